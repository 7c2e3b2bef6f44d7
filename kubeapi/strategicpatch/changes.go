package strategicpatch

import (
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// The names of directives.
const (
	directiveName   = "$patch"
	retainKeysName  = "$retainKeys"
	elementOrder    = "$setElementOrder/"
	primitiveDelete = "$deleteFromPrimitiveList/"
)

// A directive says what is done with an object. What has none is merged.
type directive string

const (
	merge   directive = "merge"
	replace directive = "replace"
	remove  directive = "delete"
)

// changes are what an object of a patch says, directives apart from members.
type changes struct {
	directive directive
	retain    map[string]bool // nil: all are retained
	fields    []change        // in the order of the patch
}

// A change is what a patch says of one member.
type change struct {
	name string
	key  []byte // name as it is spelt, in quotes; nil where value is
	// value, order and delete are JSON, nil where nothing is said; order and delete are lists.
	value, order, delete []byte
}

// readChanges reads an object of a patch.
func readChanges(patch []byte, at place) (*changes, error) {
	if err := at.tooDeep(); err != nil {
		return nil, err
	}
	members, err := rawjson.Split(patch)
	if err != nil {
		return nil, at.bad("%v", err)
	}
	c := &changes{directive: merge}
	index := make(map[string]int, len(members))
	field := func(name string) *change {
		i, ok := index[name]
		if !ok {
			i = len(c.fields)
			index[name] = i
			c.fields = append(c.fields, change{name: name})
		}
		return &c.fields[i]
	}
	for _, m := range members {
		if err := c.read(m, field, at); err != nil {
			return nil, err
		}
	}
	return c, c.checkRetained(at)
}

// read sorts in one member.
func (c *changes) read(m rawjson.Member, field func(string) *change, at place) (err error) {
	if m.Name == directiveName {
		c.directive, err = readDirective(m.Value, at)
		return err
	}
	if m.Name == retainKeysName {
		c.retain, err = readNames(m.Value, at.member(m.Name))
		return err
	}
	if name, ok := strings.CutPrefix(m.Name, elementOrder); ok {
		field(name).order = m.Value
		return wantList(m.Value, at.member(m.Name))
	}
	if name, ok := strings.CutPrefix(m.Name, primitiveDelete); ok {
		field(name).delete = m.Value
		return wantList(m.Value, at.member(m.Name))
	}
	f := field(m.Name)
	f.key, f.value = m.Key, m.Value
	return nil
}

func readDirective(value []byte, at place) (directive, error) {
	s, err := rawjson.String(value)
	if d := directive(s); err == nil && (d == merge || d == replace || d == remove) {
		return d, nil
	}
	return "", at.member(directiveName).bad("%s is none of replace, delete and merge", shorten(value))
}

func readNames(value []byte, at place) (map[string]bool, error) {
	if err := wantList(value, at); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		name, err := rawjson.String(s.Of(value))
		names[name] = true
		if err != nil {
			return at.bad("%v", err)
		}
		return nil
	})
	return names, err
}

func wantList(value []byte, at place) error {
	if value[0] != '[' {
		return at.bad("%s is no list", shorten(value))
	}
	return nil
}

// checkRetained holds that what a patch sets is among the keys that it retains.
func (c *changes) checkRetained(at place) error {
	for _, f := range c.fields {
		if c.retain != nil && f.value != nil && string(f.value) != "null" && !c.retain[f.name] {
			return at.member(f.name).bad("the patch sets it, but %s does not name it", retainKeysName)
		}
	}
	return nil
}

// An element is what a patch says of one element of a list.
type element struct {
	directive directive
	value     []byte // nil where the directive is alone
}

// readElement reads the directive of an element, if it has one.
func readElement(value []byte, at place) (element, error) {
	e := element{directive: merge, value: value}
	if value[0] != '{' {
		return e, nil
	}
	span, _ := rawjson.Find(value, directiveName)
	if span.Empty() {
		return e, nil
	}
	d, err := readDirective(span.Of(value), at)
	if err != nil {
		return e, err
	}
	e.directive = d
	if d != replace {
		return e, nil
	}
	members, err := rawjson.Split(value)
	if err != nil || len(members) != 1 {
		return e, at.bad("%s: replace must be alone in an element: it says that the other elements replace the list", directiveName)
	}
	return e, nil
}
