package jsonvalue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/listwatch/listwatch"
)

// ParseMemberPath parses a JSON path that consists only of member names, such as .spec.replicas or
// .metadata.labels['a/b']. Unlike the value at any other path, the value at such a path can be set.
// A backslash escapes the next character of a name, such as a dot.
func ParseMemberPath(s string) (names []string, err error) {
	for rest := s; rest != "" && err == nil; {
		var name string
		switch {
		case rest[0] == '.':
			name, rest = cutName(rest[1:])
		case strings.HasPrefix(rest, "['") || strings.HasPrefix(rest, `["`):
			quote := rest[1:2]
			var ok bool
			if name, rest, ok = strings.Cut(rest[2:], quote+"]"); !ok {
				err = errors.New("must be a name like ['a.b']")
			}
		default:
			err = fmt.Errorf("unexpected %q; must consist of member names only, as .spec.replicas does", rest)
		}
		if name == "" && err == nil {
			err = errors.New("empty name")
		}
		names = append(names, name)
	}
	if names == nil {
		err = errors.New("it is empty; an example is .spec.replicas")
	}
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("path %q: %v", s, err)}
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
