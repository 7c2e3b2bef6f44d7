package rawjson

import (
	"fmt"
	"slices"
)

// A Member is a name and its value in a JSON object.
type Member struct {
	// Name is the decoded name.
	Name string
	// Key is the name in quotes, as written. Key and Value are parts of the document.
	// Appending to them copies them.
	Key, Value []byte
}

// Split returns the members of doc, an object. Two members with the same name are an error,
// because parsers disagree on which of them is valid.
func Split(doc []byte) ([]Member, error) {
	members := make([]Member, 0, min(1+len(doc)/16, 8))
	var seen map[string]struct{} // the names so far; nil until there are many members
	key := 1                     // the index of the next key
	err := Members(doc, func(name string, value Span) error {
		if len(members) == manyMembers {
			seen = make(map[string]struct{}, 2*manyMembers)
			for _, m := range members {
				seen[m.Name] = struct{}{}
			}
		}
		duplicate := false
		if seen == nil {
			duplicate = slices.ContainsFunc(members, func(m Member) bool { return m.Name == name })
		} else {
			_, duplicate = seen[name]
			seen[name] = struct{}{}
		}
		if duplicate {
			return fmt.Errorf("duplicate member %q", name)
		}
		members = append(members, Member{
			Name:  name,
			Key:   Span{key, value.Start - 1}.Of(doc),
			Value: value.Of(doc),
		})
		key = value.End + 1 // skips the comma
		return nil
	})
	return members, err
}

// Lookup returns the value at path, a list of member names, in the JSON object doc. It returns
// nil if there is none.
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

// AppendWithout appends doc, a JSON object, without the member at path, a list of member names.
func AppendWithout(dst, doc []byte, path ...string) []byte {
	if doc[0] != '{' {
		return append(dst, doc...)
	}
	dst = append(dst, '{')
	first := len(dst)
	for i := 1; doc[i] != '}'; {
		var key, value Span
		key, value, i = nextMember(doc, i)
		onPath := IsString(key.Of(doc), path[0])
		if onPath && len(path) == 1 {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		if onPath {
			dst = append(dst, doc[key.Start:value.Start]...)
			dst = AppendWithout(dst, value.Of(doc), path[1:]...)
		} else {
			dst = append(dst, doc[key.Start:value.End]...)
		}
	}
	return append(dst, '}')
}
