package strategicpatch

import (
	"github.com/listwatch/listwatch/internal/rawjson"
)

// elements are what a patch says of a merged list.
type elements struct {
	replaces bool            // nothing stays of what was there
	deleted  map[string]bool // keys
	set      []setElement
}

// A setElement is one that is added, or merged with the one of its key.
type setElement struct {
	key   string
	value []byte
	at    place
}

// readElements reads the list that a patch has for a merged one; every element must have a key.
func readElements(value []byte, mergeKey string, at place) (elements, error) {
	e := elements{deleted: map[string]bool{}}
	i := 0
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		i++
		return e.read(s.Of(value), mergeKey, at.element(i-1))
	})
	return e, err
}

func (e *elements) read(value []byte, mergeKey string, at place) error {
	if mergeKey != "" && value[0] != '{' {
		return at.bad("want an object, for the list is merged by %s, got %s", mergeKey, shorten(value))
	}
	said, err := readElement(value, at)
	if err != nil {
		return err
	}
	if said.directive == replace {
		e.replaces = true
		return nil
	}
	key, err := readKey(value, mergeKey, at)
	switch {
	case err != nil:
		return err
	case said.directive == remove:
		e.deleted[key] = true
	default:
		e.set = append(e.set, setElement{key, value, at})
	}
	return nil
}

// readKey returns the key of an element that must have one.
func readKey(value []byte, mergeKey string, at place) (string, error) {
	n := node{raw: value}
	key := n.keyBy(mergeKey)
	switch {
	case key != "":
		return key, nil
	case mergeKey == "":
		return "", at.bad("want a string, a number or a boolean, got %s", shorten(value))
	}
	return "", at.member(mergeKey).bad("the elements of the list are merged by it, so it must be a string, a number or a boolean; the element is %s", shorten(value))
}

// readKeys returns the keys of a list of elements, or of objects with nothing but the key.
func readKeys(value []byte, mergeKey string, at place) ([]string, error) {
	var keys []string
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		key, err := readKey(s.Of(value), mergeKey, at.element(len(keys)))
		keys = append(keys, key)
		return err
	})
	return keys, err
}
