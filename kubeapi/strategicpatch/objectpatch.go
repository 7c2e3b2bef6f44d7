package strategicpatch

import (
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// The names of directives.
const (
	directiveKey        = "$patch"
	retainKeysKey       = "$retainKeys"
	setOrderPrefix      = "$setElementOrder/"
	deleteScalarsPrefix = "$deleteFromPrimitiveList/"
)

// A directive is the value of $patch. The default is merge.
type directive string

const (
	directiveMerge   directive = "merge"
	directiveReplace directive = "replace"
	directiveDelete  directive = "delete"
)

// An objectPatch is a parsed object of a patch, with the directives separated from the
// members.
type objectPatch struct {
	directive directive
	retain    map[string]bool // names of the members to keep; nil means all
	fields    []fieldPatch    // in the order of the patch
}

// A fieldPatch is the patch of one member.
type fieldPatch struct {
	name string
	key  []byte // name as written, with quotes; nil if value is nil
	// value, order and delete are JSON, or nil if the patch does not contain them. order
	// and delete are lists.
	value, order, delete []byte
}

// parseObjectPatch parses an object of a patch.
func parseObjectPatch(patch []byte, at fieldPath) (*objectPatch, error) {
	if err := at.checkDepth(); err != nil {
		return nil, err
	}
	members, err := rawjson.Split(patch)
	if err != nil {
		return nil, at.invalid("%v", err)
	}
	c := &objectPatch{directive: directiveMerge}
	index := make(map[string]int, len(members))
	field := func(name string) *fieldPatch {
		i, ok := index[name]
		if !ok {
			i = len(c.fields)
			index[name] = i
			c.fields = append(c.fields, fieldPatch{name: name})
		}
		return &c.fields[i]
	}
	for _, m := range members {
		if err := c.parseMember(m, field, at); err != nil {
			return nil, err
		}
	}
	return c, c.checkRetained(at)
}

// parseMember adds m, a member of the patch, to p.
func (p *objectPatch) parseMember(m rawjson.Member, field func(string) *fieldPatch, at fieldPath) (err error) {
	if m.Name == directiveKey {
		p.directive, err = parseDirective(m.Value, at)
		return err
	}
	if m.Name == retainKeysKey {
		p.retain, err = parseNames(m.Value, at.member(m.Name))
		return err
	}
	if name, ok := strings.CutPrefix(m.Name, setOrderPrefix); ok {
		field(name).order = m.Value
		return requireList(m.Value, at.member(m.Name))
	}
	if name, ok := strings.CutPrefix(m.Name, deleteScalarsPrefix); ok {
		field(name).delete = m.Value
		return requireList(m.Value, at.member(m.Name))
	}
	f := field(m.Name)
	f.key, f.value = m.Key, m.Value
	return nil
}

func parseDirective(value []byte, at fieldPath) (directive, error) {
	s, err := rawjson.String(value)
	if d := directive(s); err == nil && (d == directiveMerge || d == directiveReplace || d == directiveDelete) {
		return d, nil
	}
	return "", at.member(directiveKey).invalid("%s must be replace, delete or merge", truncate(value))
}

func parseNames(value []byte, at fieldPath) (map[string]bool, error) {
	if err := requireList(value, at); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		name, err := rawjson.String(s.Of(value))
		names[name] = true
		if err != nil {
			return at.invalid("%v", err)
		}
		return nil
	})
	return names, err
}

func requireList(value []byte, at fieldPath) error {
	if value[0] != '[' {
		return at.invalid("%s is not a list", truncate(value))
	}
	return nil
}

// checkRetained returns an error if the patch sets a member that $retainKeys does not
// contain.
func (p *objectPatch) checkRetained(at fieldPath) error {
	for _, f := range p.fields {
		if p.retain != nil && f.value != nil && string(f.value) != "null" && !p.retain[f.name] {
			return at.member(f.name).invalid("the patch sets it, but %s does not contain it", retainKeysKey)
		}
	}
	return nil
}

// An elementPatch is a list element of a patch with its directive.
type elementPatch struct {
	directive directive
	value     []byte // the element, with the directive
}

// parseElementPatch parses the directive of an element, if there is one.
func parseElementPatch(value []byte, at fieldPath) (elementPatch, error) {
	e := elementPatch{directive: directiveMerge, value: value}
	if value[0] != '{' {
		return e, nil
	}
	span, _ := rawjson.Find(value, directiveKey)
	if span.Empty() {
		return e, nil
	}
	d, err := parseDirective(span.Of(value), at)
	if err != nil {
		return e, err
	}
	e.directive = d
	if d != directiveReplace {
		return e, nil
	}
	members, err := rawjson.Split(value)
	if err != nil || len(members) != 1 {
		return e, at.invalid(
			"%s: replace must be the only member of the element; it means that the other elements replace the list",
			directiveKey)
	}
	return e, nil
}
