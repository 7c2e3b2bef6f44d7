package postgres

import (
	"errors"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// documentsTable returns the table of documents: each row has a whole object, of any collection.
func documentsTable(name string) Table {
	return Table{Name: name, collection: "collection", Namespace: "namespace", document: "doc"}
}

// documentsColumns are the columns of the table of documents, in SQL.
const documentsColumns = `(collection text COLLATE "C", namespace text COLLATE "C",
	name text COLLATE "C", doc json NOT NULL, PRIMARY KEY (collection, namespace, name))`

// errNoDocuments is the error of a table that exists and has other columns than a table of
// documents.
var errNoDocuments = errors.New(
	"it is not a table of documents, whose primary key is (collection, namespace, name) and which has a json column doc")

// hasDocuments reports whether the identity is that of a table of documents.
func (s *shape) hasDocuments() bool {
	return len(s.identity) == 3 && s.identity[0] == s.collectionAt && s.identity[1] == s.namespaceAt &&
		s.columns[s.identity[2]].name == "name"
}

// document returns the object of a row of the table of documents.
func (c *collection) document(key listwatch.Key, doc []byte, v listwatch.Version) (*listwatch.Object, error) {
	if isNamespaced := key.Namespace != ""; c.spec.Kind != "" && isNamespaced != c.spec.Namespaced {
		return nil, fmt.Errorf("its namespace is %q, but Namespaced is %t", key.Namespace, c.spec.Namespaced)
	}
	d, err := c.spec.Restore(key, doc)
	if err != nil {
		return nil, err
	}
	o := d.Seal(v)
	for member, want := range map[string]string{"name": key.Name, "namespace": key.Namespace} {
		// A missing member is empty.
		if got, _ := rawjson.String(rawjson.Lookup(o.Data, "metadata", member)); got != want {
			return nil, fmt.Errorf("metadata.%s of its document is %q, want %q", member, got, want)
		}
	}
	return o, nil
}
