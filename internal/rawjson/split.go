package rawjson

import "fmt"

// A Member is one member of an object as its writer spelled it.
type Member struct {
	// Name is decoded; Key is the same in quotes, as written.
	Name string
	// Key and Value are pieces of the document and can't be grown into what follows them.
	Key, Value []byte
}

// Split takes doc, a compact JSON object, apart. A name that comes twice is an error: readers would disagree on which one counts.
func Split(doc []byte) ([]Member, error) {
	var members []Member
	seen := make(map[string]struct{}, 16)
	key := 1 // where the next member begins
	err := Members(doc, func(name string, value Span) error {
		if _, twice := seen[name]; twice {
			return fmt.Errorf("member %q is there twice", name)
		}
		seen[name] = struct{}{}
		members = append(members, Member{
			Name:  name,
			Key:   Span{key, value.Start - 1}.Of(doc),
			Value: value.Of(doc),
		})
		key = value.End + 1 // behind the comma
		return nil
	})
	return members, err
}

// Lookup returns the value at path, a chain of member names, in doc, a compact JSON object; nil where there is none. A dot in a
// name can't be told from one between names, so paths come as slices.
func Lookup(doc []byte, path ...string) []byte {
	for _, name := range path {
		if len(doc) == 0 || doc[0] != '{' {
			return nil
		}
		span, err := Find(doc, name)
		if err != nil || span.Empty() {
			return nil
		}
		doc = span.Of(doc)
	}
	return doc
}
