package jsonvalue

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// A Path is a JSON path, as in the printer columns of a CustomResourceDefinition. Slices,
// unions, scripts and recursion are not supported.
type Path []pathStep

// A pathStep selects one or several parts of a value.
type pathStep struct {
	kind  stepKind
	name  string   // name of a member, or the string that a filter compares with
	index int      // index of an element; negative values count from the end
	of    []string // path of the value that a filter compares
}

type stepKind uint8

const (
	stepMember stepKind = iota
	stepIndex
	stepAll
	stepFilter
)

// ParsePath parses a path such as .spec.replicas, .status.conditions[?(@.type=="Ready")].status or
// .metadata.labels['a/b']. A backslash escapes the next character of a name, such as a dot.
func ParsePath(s string) (Path, error) {
	var path Path
	for rest := s; rest != ""; {
		var step pathStep
		var err error
		switch rest[0] {
		case '.':
			step.name, rest = cutName(rest[1:])
			if step.name == "" {
				err = fmt.Errorf("empty name")
			}
		case '[':
			step, rest, err = cutBracket(rest[1:])
		default:
			err = fmt.Errorf("unexpected %q; must start with a dot or a bracket", rest)
		}
		if err != nil {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("JSON path %q: %v", s, err)}
		}
		path = append(path, step)
	}
	if path == nil {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the JSON path is empty; an example is .spec.replicas",
		}
	}
	return path, nil
}

// ParseMemberPath parses a path that consists only of member names. Unlike the value at
// any other path, the value at such a path can be set.
func ParseMemberPath(s string) ([]string, error) {
	path, err := ParsePath(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, step := range path {
		if step.kind != stepMember {
			return nil, &listwatch.Error{
				Code: listwatch.Invalid, Message: fmt.Sprintf(
					"path %q: must consist of member names only, as .spec.replicas does", s),
			}
		}
		names = append(names, step.name)
	}
	return names, nil
}

// cutName splits s after the name at its start.
func cutName(s string) (name, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.' || c == '[':
			return b.String(), s[i:]
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// cutBracket parses the rest of a step after its opening bracket: 0], *], 'name'] or
// ?(@.name=="text")].
func cutBracket(s string) (step pathStep, rest string, err error) {
	switch {
	case strings.HasPrefix(s, "*]"):
		return pathStep{kind: stepAll}, s[2:], nil
	case strings.HasPrefix(s, "?(@."):
		of, wanted, ok := strings.Cut(s[len("?(@."):], "==")
		text, rest, ok2 := cutQuoted(strings.TrimLeft(wanted, " "))
		rest, ok3 := strings.CutPrefix(rest, ")]")
		if !ok || !ok2 || !ok3 {
			return step, "", fmt.Errorf(`must be a filter like [?(@.type=="Ready")]`)
		}
		return pathStep{kind: stepFilter, name: text, of: strings.Split(strings.TrimSpace(of), ".")}, rest, nil
	case s != "" && (s[0] == '\'' || s[0] == '"'):
		name, rest, ok := cutQuoted(s)
		rest, ok2 := strings.CutPrefix(rest, "]")
		if !ok || !ok2 {
			return step, "", fmt.Errorf("must be a name like ['a.b']")
		}
		return pathStep{name: name}, rest, nil
	}
	number, rest, ok := strings.Cut(s, "]")
	if step.index, err = strconv.Atoi(number); err != nil || !ok {
		return step, "", fmt.Errorf("brackets must contain a number, *, a name in quotes or a filter")
	}
	step.kind = stepIndex
	return step, rest, nil
}

// cutQuoted splits s after the quoted text at its start, in single or double quotes.
// Escapes are not supported.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", "", false
	}
	return strings.Cut(s[1:], s[:1])
}

// SplitMembers returns the member names at the start of p, and the rest of p.
func (p Path) SplitMembers() (names []string, rest Path) {
	for i, step := range p {
		if step.kind != stepMember {
			return names, p[i:]
		}
		names = append(names, step.name)
	}
	return names, nil
}

// Find calls f with each value in doc that p matches.
func (p Path) Find(doc Value, f func(Value)) {
	if len(doc) == 0 {
		return
	}
	if len(p) == 0 {
		f(doc)
		return
	}
	step, rest := p[0], p[1:]
	switch step.kind {
	case stepMember:
		rest.Find(doc.At(step.name), f)
	case stepIndex:
		wanted, i := step.index, 0
		if wanted < 0 {
			wanted += doc.Len()
		}
		doc.Elements(func(v Value) {
			if i == wanted {
				rest.Find(v, f)
			}
			i++
		})
	case stepAll:
		doc.Elements(func(v Value) { rest.Find(v, f) })
		doc.Members(func(_ string, v Value) { rest.Find(v, f) })
	case stepFilter:
		doc.Elements(func(v Value) {
			if v.At(step.of...).Text() == step.name {
				rest.Find(v, f)
			}
		})
	}
}
