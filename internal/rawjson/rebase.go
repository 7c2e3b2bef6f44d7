package rawjson

import (
	"bytes"
	"cmp"
)

// Rebase compares two JSON documents, before and after, applies the differences to a third
// document, doc, and returns the result. All three must be compact. It compares objects member by
// member, and other values as a whole. Members of doc that are absent from both other documents
// stay unchanged, including their order and spelling. An object that only before lacks counts as an
// empty object there. Two members with the same name are an error.
// Rebase does not modify its arguments, but may return doc or after.
//
// It is for a writer that knows only some members of an object. Then doc is the complete object,
// before is the object as the writer has decoded and encoded it again, and after is the same object
// with the change of the writer.
func Rebase(doc, before, after []byte) ([]byte, error) {
	if bytes.Equal(before, after) {
		return doc, nil
	}
	if bytes.Equal(doc, before) {
		return after, nil // the writer knows every member
	}
	if doc[0] != '{' || before[0] != '{' || after[0] != '{' {
		return after, nil
	}
	members, errDoc := Split(doc)
	old, errBefore := Split(before)
	changed, errAfter := Split(after)
	if err := cmp.Or(errDoc, errBefore, errAfter); err != nil {
		return nil, err
	}
	inDoc, inBefore, inAfter := values(members), values(old), values(changed)
	kept := members[:0]
	for _, m := range members {
		b, a := inBefore[m.Name], inAfter[m.Name]
		if b == nil && m.Value[0] == '{' && a != nil {
			b = []byte("{}") // the writer omits an object if all members that it knows are zero
		}
		switch {
		case a != nil && b != nil:
			value, err := Rebase(m.Value, b, a)
			if err != nil {
				return nil, err
			}
			m.Value = value
		case a != nil:
			m.Value = a
		case b != nil:
			continue
		}
		kept = append(kept, m)
	}
	for _, m := range changed {
		if inDoc[m.Name] == nil && !bytes.Equal(m.Value, inBefore[m.Name]) {
			kept = append(kept, m)
		}
	}
	return Join(kept), nil
}

// values returns the values of members by name.
func values(members []Member) map[string][]byte {
	m := make(map[string][]byte, len(members))
	for _, member := range members {
		m[member.Name] = member.Value
	}
	return m
}

// Join returns the object with the given members.
func Join(members []Member) []byte {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.Key...), ':'), m.Value...)
	}
	return append(out, '}')
}
