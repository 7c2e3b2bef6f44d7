// Package patch applies JSON merge patches and JSON patches to the bytes of objects.
package patch

import (
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// maxDepth limits the depth of a patch, because each level requires a pass over
// everything below it.
const maxDepth = 128

// Merge applies a JSON merge patch to doc (rfc7386#section-2). Both are JSON objects,
// and doc is compact. Members that the patch does not change keep their position and their
// exact text.
func Merge(doc, patch []byte) ([]byte, error) {
	return appendMerged(make([]byte, 0, len(doc)+len(patch)), doc, patch, maxDepth)
}

// appendMerged appends the object that results from applying patch to target, which may be
// any value or empty.
func appendMerged(out, target, patch []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, Invalid(fmt.Errorf("it is deeper than %d levels", maxDepth))
	}
	changes, err := rawjson.Split(patch)
	if err != nil {
		return nil, Invalid(err)
	}
	var members []rawjson.Member
	if len(target) > 0 && target[0] == '{' {
		if members, err = rawjson.Split(target); err != nil {
			return nil, Invalid(err)
		}
	}
	change := make(map[string][]byte, len(changes))
	for _, c := range changes {
		change[c.Name] = c.Value
	}
	m := ObjectWriter{out: append(out, '{'), depth: depth}
	for _, old := range members {
		value, changed := change[old.Name]
		if !changed {
			m.Member(old.Key, old.Value)
			continue
		}
		delete(change, old.Name)
		m.merge(old.Key, old.Value, value)
	}
	for _, c := range changes {
		if _, added := change[c.Name]; added {
			m.merge(c.Key, nil, c.Value)
		}
	}
	return append(m.out, '}'), m.err
}

// An ObjectWriter writes the members of an object.
type ObjectWriter struct {
	out      []byte
	nonEmpty bool
	depth    int
	err      error
}

// NewObjectWriter returns a writer of an object. size is the expected number of bytes.
func NewObjectWriter(size int) *ObjectWriter {
	return &ObjectWriter{out: append(make([]byte, 0, size), '{')}
}

// Bytes ends the object and returns it. It must be called only once.
func (o *ObjectWriter) Bytes() []byte { return append(o.out, '}') }

func (o *ObjectWriter) key(key []byte) {
	if o.nonEmpty {
		o.out = append(o.out, ',')
	}
	o.nonEmpty = true
	o.out = append(append(o.out, key...), ':')
}

// Member writes a member, whose key is raw JSON.
func (o *ObjectWriter) Member(key, value []byte) {
	o.key(key)
	o.out = append(o.out, value...)
}

// merge applies the patch in change to the value in old, and writes the result as the member with
// the given key. If change is null, merge writes nothing.
func (o *ObjectWriter) merge(key, old, change []byte) {
	switch {
	case o.err != nil || string(change) == "null":
	case change[0] != '{':
		o.Member(key, change)
	default:
		o.key(key)
		out, err := appendMerged(o.out, old, change, o.depth-1)
		if err != nil {
			o.err = err
			return
		}
		o.out = out
	}
}

// Invalid returns an error of status 400: the patch itself is wrong.
func Invalid(err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the patch is invalid", Err: err}
}
