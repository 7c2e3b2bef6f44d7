package rawjson

import "fmt"

// maxPatchDepth limits the depth of a merge patch, because each level requires a pass over
// everything below it.
const maxPatchDepth = 128

// Merge applies a JSON merge patch to doc (rfc7386#section-2). Both are JSON objects,
// and doc is compact. Members that the patch does not change keep their position and their
// exact text.
func Merge(doc, patch []byte) ([]byte, error) {
	return appendMerged(make([]byte, 0, len(doc)+len(patch)), doc, patch, maxPatchDepth)
}

// appendMerged appends the object that results from applying patch to target, which may be
// any value or empty.
func appendMerged(out, target, patch []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, fmt.Errorf("it is deeper than %d levels", maxPatchDepth)
	}
	changes, err := Split(patch)
	if err != nil {
		return nil, err
	}
	var members []Member
	if len(target) > 0 && target[0] == '{' {
		if members, err = Split(target); err != nil {
			return nil, err
		}
	}
	change := make(map[string][]byte, len(changes))
	for _, c := range changes {
		change[c.Name] = c.Value
	}
	m := objectWriter{out: append(out, '{'), depth: depth}
	for _, old := range members {
		value, changed := change[old.Name]
		if !changed {
			m.member(old.Key, old.Value)
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

// An objectWriter writes the members of an object.
type objectWriter struct {
	out      []byte
	nonEmpty bool
	depth    int
	err      error
}

func (o *objectWriter) key(key []byte) {
	if o.nonEmpty {
		o.out = append(o.out, ',')
	}
	o.nonEmpty = true
	o.out = append(append(o.out, key...), ':')
}

// member writes a member, whose key is raw JSON.
func (o *objectWriter) member(key, value []byte) {
	o.key(key)
	o.out = append(o.out, value...)
}

// merge applies the patch in change to the value in old, and writes the result as the member with
// the given key. If change is null, merge writes nothing.
func (o *objectWriter) merge(key, old, change []byte) {
	switch {
	case o.err != nil || string(change) == "null":
	case change[0] != '{':
		o.member(key, change)
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
