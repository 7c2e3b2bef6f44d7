package kubeapi

import (
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// patchDepth bounds how deep a patch may reach: each level costs a walk over all that is below it.
const maxPatchDepth = 128

// mergePatch returns doc as patch changes it (rfc7386#section-2). Both are JSON objects, doc in compact form. What the patch leaves
// alone stays as it was spelt and where it stood.
func mergePatch(doc, patch []byte) ([]byte, error) {
	return appendMerged(make([]byte, 0, len(doc)+len(patch)), doc, patch, maxPatchDepth)
}

// mergeInto appends the object that patch makes of target, which may be anything, or nothing.
func appendMerged(out, target, patch []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, invalidPatch(fmt.Errorf("it reaches deeper than %d levels", maxPatchDepth))
	}
	changes, err := rawjson.Split(patch)
	if err != nil {
		return nil, invalidPatch(err)
	}
	var members []rawjson.Member
	if len(target) > 0 && target[0] == '{' {
		if members, err = rawjson.Split(target); err != nil {
			return nil, invalidPatch(err)
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

// A merger writes the members of an object.
type objectWriter struct {
	out      []byte
	nonEmpty bool
	depth    int
	err      error
}

func (m *objectWriter) key(key []byte) {
	if m.nonEmpty {
		m.out = append(m.out, ',')
	}
	m.nonEmpty = true
	m.out = append(append(m.out, key...), ':')
}

func (m *objectWriter) member(key, value []byte) {
	m.key(key)
	m.out = append(m.out, value...)
}

// merge writes what a change makes of the value old; null: nothing.
func (m *objectWriter) merge(key, old, change []byte) {
	switch {
	case m.err != nil || string(change) == "null":
	case change[0] != '{':
		m.member(key, change)
	default:
		m.key(key)
		out, err := appendMerged(m.out, old, change, m.depth-1)
		if err != nil {
			m.err = err
			return
		}
		m.out = out
	}
}

func invalidPatch(err error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "the patch can't be read", Err: err}
}
