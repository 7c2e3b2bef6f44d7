package strategicpatch

import (
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A listPatch is the parsed patch of a merged list.
type listPatch struct {
	replace  bool            // the existing elements are dropped
	deleted  map[string]bool // keys of the elements to delete
	elements []keyedElement
}

// A keyedElement is an element to append, or to merge into the existing element with the
// same key.
type keyedElement struct {
	key   string
	value []byte
	index int // in the list of the patch
}

// parseListPatch parses the patch of a merged list. Every element must have a key.
func parseListPatch(value []byte, mergeKey string, at fieldPath) (listPatch, error) {
	n := 0
	_ = rawjson.Elements(value, func(rawjson.Span) error { // no error: value is a list
		n++
		return nil
	})
	// A slice that grows would take several times the memory of a long patch.
	e := listPatch{deleted: map[string]bool{}, elements: make([]keyedElement, 0, n)}
	i := 0
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		i++
		return e.parseElement(s.Of(value), mergeKey, i-1, at.element(i-1))
	})
	return e, err
}

func (l *listPatch) parseElement(value []byte, mergeKey string, index int, at fieldPath) error {
	if mergeKey != "" && value[0] != '{' {
		return at.invalid("want an object, because the list is merged by %s; got %s", mergeKey, truncate(value))
	}
	said, err := parseElementPatch(value, at)
	if err != nil {
		return err
	}
	if said.directive == directiveReplace {
		l.replace = true
		return nil
	}
	key, err := parseKey(value, mergeKey, at)
	switch {
	case err != nil:
		return err
	case said.directive == directiveDelete:
		l.deleted[key] = true
	default:
		l.elements = append(l.elements, keyedElement{key, value, index})
	}
	return nil
}

// parseKey returns the key of an element, which must have one.
func parseKey(value []byte, mergeKey string, at fieldPath) (string, error) {
	n := node{raw: value}
	key := n.keyOf(mergeKey)
	switch {
	case key != "":
		return key, nil
	case mergeKey == "":
		return "", at.invalid("want a string, a number or a boolean, got %s", truncate(value))
	}
	return "", at.member(mergeKey).invalid(
		"it is the merge key of the list, so it must be a string, a number or a boolean; the element is %s",
		truncate(value))
}

// parseKeys returns the keys of a list. Elements of the list may be objects that contain only the
// key.
func parseKeys(value []byte, mergeKey string, at fieldPath) ([]string, error) {
	var keys []string
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		key, err := parseKey(s.Of(value), mergeKey, at.element(len(keys)))
		keys = append(keys, key)
		return err
	})
	return keys, err
}
