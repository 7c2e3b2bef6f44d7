package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A shape describes the columns of a table at one time, and how a row becomes an object. It is
// immutable.
type shape struct {
	*facts
	columns   []column
	generated []string // the generated columns that the log does not have
	identity  []int    // the columns whose values identify a row, in the order of the index
	nameFrom  []int    // the columns of identity that become the name
	filter    string   // the publication's condition for rows, or empty
	// The columns of the members of metadata, of the spec and of the whole object, and the column
	// that names a collection, or absent.
	namespaceAt, uidAt, createdAt, labelsAt, specAt, documentAt, collectionAt int

	labels      []int
	prefix      []byte // the JSON of an object up to its version
	fingerprint fingerprint
}

const absent = -1

// A column is a column that the publication has.
type column struct {
	name  string
	oid   uint32 // of the type
	kind  *dataType
	label []byte // the name as a JSON string
	shown bool   // as a member of the spec
}

// isJSON is the kind of a value from the previous object. Its text is already JSON.
const isJSON = 'j'

// newShape completes s for t.
func newShape(s *shape, t *Table) (*shape, error) {
	if err := s.findColumns(t); err != nil {
		return nil, err
	}
	s.nameFrom = slices.DeleteFunc(slices.Clone(s.identity), func(at int) bool {
		return at == s.namespaceAt || at == s.collectionAt
	})
	if len(s.nameFrom) == 0 {
		s.nameFrom = s.identity
	}
	for i := range s.columns {
		c := &s.columns[i]
		c.shown = s.specAt == absent && s.documentAt == absent &&
			(len(t.Columns) == 0 || slices.Contains(t.Columns, c.name))
		c.label, _ = jsontext.AppendQuote(nil, c.name) // no error, because names are UTF-8
	}
	kind, err := listwatch.Encode(t.Kind)
	if err != nil {
		return nil, err
	}
	apiVersion, err := listwatch.Encode(t.APIVersion)
	if err != nil {
		return nil, err
	}
	s.prefix = fmt.Appendf(nil, `{"apiVersion":%s,"kind":%s,"metadata":{"resourceVersion":"`, apiVersion, kind)
	return s, nil
}

// findColumns finds the columns that t names.
func (s *shape) findColumns(t *Table) (err error) {
	find := func(role, name string, forms ...form) int {
		if name == "" || err != nil {
			return absent
		}
		i := slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
		switch {
		case i == absent:
			err = fmt.Errorf("table %s has no column %q, which Table.%s names (or the publication omits it); it has %s",
				s.name, name, role, s.columnList())
		case len(forms) > 0 && !slices.Contains(forms, s.columns[i].kind.form):
			err = fmt.Errorf("column %q of table %s has the wrong type for Table.%s", name, s.name, role)
		}
		return i
	}
	s.collectionAt, s.documentAt = find("collection", t.collection), find("document", t.document, asJSON)
	s.namespaceAt = find("Namespace", t.Namespace)
	if t.document != "" && (err != nil || !s.hasDocuments()) {
		return fmt.Errorf("table %s: %w", s.name, errNoDocuments)
	}
	s.uidAt = find("UID", t.UID)
	s.createdAt = find("Created", t.Created, asTime, asTimeZ)
	s.labelsAt = find("LabelsFrom", t.LabelsFrom, asJSON)
	s.specAt = find("Spec", t.Spec, asJSON)
	for _, name := range t.Labels {
		s.labels = append(s.labels, find("Labels", name))
	}
	for _, name := range t.Columns {
		find("Columns", name)
	}
	for _, path := range t.Fields {
		if member, isSpec := strings.CutPrefix(path, "spec."); isSpec && s.specAt == absent {
			name, _, _ := strings.Cut(member, ".")
			find("Fields", name)
		} else if !isSpec && !strings.HasPrefix(path, "metadata.") {
			err = cmp.Or(err, fmt.Errorf("field %q of table %s: must be a path such as spec.%[1]s", path, s.name))
		}
	}
	return err
}

// selectAll returns the query for all rows that the publication contains.
func (s *shape) selectAll() string {
	only := "ONLY "
	if s.kind == partitioned {
		only = ""
	}
	query := "SELECT " + s.columnList() + " FROM " + only + identifier(s.namespace, s.name)
	if s.filter != "" {
		query += " WHERE " + s.filter
	}
	return query
}

// columnList returns the names of the columns in SQL.
func (s *shape) columnList() string {
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = identifier(c.name)
	}
	return strings.Join(names, ", ")
}

// matches reports whether the changes that follow r have the columns and the identity of s.
func (s *shape) matches(r relation) bool {
	if s.namespace != r.namespace || s.name != r.name || s.replicaIdentity != string(r.identity) ||
		len(s.columns) != len(r.columns) {
		return false
	}
	for i, c := range r.columns {
		isIdentity := r.identity == 'f' || slices.Contains(s.identity, i)
		if c != (relationColumn{name: s.columns[i].name, oid: s.columns[i].oid, isIdentity: isIdentity}) {
			return false
		}
	}
	return true
}

// nameOf returns the name of the object of a row: the values of its identity except for the
// namespace, joined by dots. In a value, a slash and a percent sign are escaped as in a URL, and so
// is a dot if there are several values. An empty value is "%".
func (s *shape) nameOf(t tuple) string {
	if len(s.nameFrom) == 1 {
		return escape(nameEscaper, t[s.nameFrom[0]].text)
	}
	parts := make([]string, len(s.nameFrom))
	for i, at := range s.nameFrom {
		parts[i] = escape(partEscaper, t[at].text)
	}
	return strings.Join(parts, ".")
}

var (
	nameEscaper = strings.NewReplacer("%", "%25", "/", "%2F")
	partEscaper = strings.NewReplacer("%", "%25", "/", "%2F", ".", "%2E")
)

func escape(r *strings.Replacer, text []byte) string {
	if len(text) == 0 {
		return "%"
	}
	return r.Replace(string(text))
}

// placeOf returns the place of a row.
func (s *shape) placeOf(t tuple) place {
	p := place{Key: listwatch.Key{Name: s.nameOf(t)}}
	if s.namespaceAt != absent {
		p.Namespace = string(t[s.namespaceAt].text)
	}
	if s.collectionAt != absent {
		p.collection = string(t[s.collectionAt].text)
	}
	return p
}

// knowsNamespace reports whether the identity of a row has its namespace. If not, the namespace of
// a row that was deleted is known only from the object.
func (s *shape) knowsNamespace() bool {
	return s.namespaceAt == absent || slices.Contains(s.identity, s.namespaceAt)
}

// restore fills in the values that an update did not send. It takes them from old, the object
// before the update. It returns false if old is nil.
func (s *shape) restore(t tuple, old *listwatch.Object) bool {
	for i := range t {
		if t[i].kind != isUnchanged {
			continue
		}
		switch {
		case old == nil:
			return false
		case slices.Contains(s.labels, i):
			text, ok := old.Labels[s.columns[i].name]
			t[i] = value{text: []byte(text), kind: isText}
			if !ok {
				t[i].kind = isNull
			}
		case i == s.documentAt:
			t[i] = value{text: old.Data, kind: isJSON}
		case i == s.uidAt:
			t[i] = found(old, "metadata", "uid")
			if unquoted, err := jsontext.AppendUnquote(nil, t[i].text); err == nil {
				t[i] = value{text: unquoted, kind: isText}
			}
		case i == s.labelsAt:
			t[i] = found(old, "metadata", "labels")
		case i == s.specAt:
			t[i] = found(old, "spec")
		case s.columns[i].shown:
			t[i] = found(old, "spec", s.columns[i].name)
		default:
			t[i].kind = isNull // not shown
		}
	}
	return true
}

// found returns the value at a path of the JSON of o.
func found(o *listwatch.Object, path ...string) value {
	doc := o.Data
	for _, name := range path {
		span, err := rawjson.Find(doc, name)
		if err != nil || span.Empty() {
			return value{kind: isNull}
		}
		doc = span.Of(doc)
	}
	return value{text: doc, kind: isJSON}
}

// object returns the object of a row with the given key, at version v.
func (s *shape) object(key listwatch.Key, t tuple, v listwatch.Version) (*listwatch.Object, error) {
	o := &listwatch.Object{Key: key, Version: v}
	doc := make([]byte, 0, s.size(t))
	doc = append(doc, s.prefix...)
	doc = append(doc, v.String()...)
	doc = append(doc, `","name":`...)
	doc, err := jsontext.AppendQuote(doc, o.Key.Name)
	if err == nil && o.Key.Namespace != "" {
		doc, err = jsontext.AppendQuote(append(doc, `,"namespace":`...), o.Key.Namespace)
	}
	if err == nil && s.namespaceAt != absent && o.Key.Namespace == "" {
		err = fmt.Errorf("its namespace, column %q, is empty", s.columns[s.namespaceAt].name)
	}
	if err == nil && s.uidAt != absent && t[s.uidAt].kind == isText {
		doc, err = jsontext.AppendQuote(append(doc, `,"uid":`...), t[s.uidAt].text)
	}
	if err == nil && s.createdAt != absent && t[s.createdAt].kind == isText {
		doc = appendCreated(doc, t[s.createdAt].text)
	}
	if err == nil {
		doc, err = s.appendLabels(doc, o, t)
	}
	if err == nil {
		doc, err = s.appendSpec(append(doc, `},"spec":`...), t)
	}
	if err != nil {
		return nil, fmt.Errorf("row %q of table %s: %w", o.Key.String(), s.name, err)
	}
	o.Data = append(doc, '}')
	return o, nil
}

// size estimates the length of an object's JSON.
func (s *shape) size(t tuple) int {
	n := len(s.prefix) + 120
	for i := range t {
		n += len(t[i].text) + len(s.columns[i].label) + 4
	}
	return n
}

// appendCreated appends a time with the precision of Kubernetes, which is a second.
func appendCreated(doc, text []byte) []byte {
	for _, layout := range []string{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999"} {
		if at, err := time.Parse(layout, string(text)); err == nil {
			return at.UTC().AppendFormat(doc, `,"creationTimestamp":"`+time.RFC3339+`"`)
		}
	}
	return doc // an infinity, or a year that RFC 3339 does not have
}

func (s *shape) appendLabels(doc []byte, o *listwatch.Object, t tuple) (_ []byte, err error) {
	if s.labelsAt != absent {
		v := t[s.labelsAt]
		if v.kind == isNull || string(v.text) == "null" {
			return doc, nil
		}
		compact, err := rawjson.Compact(v.text)
		if err != nil {
			return nil, err
		}
		if o.Labels, err = rawjson.FillStringMap(nil, compact); err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
		return append(append(doc, `,"labels":`...), compact...), nil
	}
	separator := `,"labels":{`
	for _, at := range s.labels {
		if t[at].kind == isNull {
			continue
		}
		if o.Labels == nil {
			o.Labels = make(map[string]string, len(s.labels))
		}
		o.Labels[s.columns[at].name] = string(t[at].text)
		doc = append(append(append(doc, separator...), s.columns[at].label...), ':')
		if doc, err = jsontext.AppendQuote(doc, t[at].text); err != nil {
			return nil, err
		}
		separator = ","
	}
	if o.Labels != nil {
		doc = append(doc, '}')
	}
	return doc, nil
}

func (s *shape) appendSpec(doc []byte, t tuple) (_ []byte, err error) {
	if s.specAt != absent {
		return appendColumn(doc, s.columns[s.specAt].kind, t[s.specAt])
	}
	doc = append(doc, '{')
	first := true
	for i := range s.columns {
		c := &s.columns[i]
		if !c.shown {
			continue
		}
		if !first {
			doc = append(doc, ',')
		}
		first = false
		doc = append(append(doc, c.label...), ':')
		if doc, err = appendColumn(doc, c.kind, t[i]); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return append(doc, '}'), nil
}

func appendColumn(doc []byte, kind *dataType, v value) ([]byte, error) {
	switch v.kind {
	case isNull:
		return append(doc, "null"...), nil
	case isJSON:
		return append(doc, v.text...), nil
	}
	return appendValue(doc, kind, v.text)
}

// sameContent reports whether two objects are equal except for their versions.
func sameContent(a, b *listwatch.Object) bool {
	ofA, ofB := versionIn(a.Data), versionIn(b.Data)
	return bytes.Equal(a.Data[:ofA.Start], b.Data[:ofB.Start]) && bytes.Equal(a.Data[ofA.End:], b.Data[ofB.End:])
}

// versionIn returns the position of metadata.resourceVersion, which every object has.
func versionIn(doc []byte) rawjson.Span {
	metadata, err := rawjson.Find(doc, "metadata")
	if err != nil {
		return rawjson.Span{}
	}
	version, _ := rawjson.Find(metadata.Of(doc), "resourceVersion") // empty after an error
	return version.Shift(metadata.Start)
}
