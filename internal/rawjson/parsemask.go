package rawjson

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of a [Mask].
const (
	maxMaskBytes = 4 << 10
	maxMaskPaths = 64
	maxMaskDepth = 16
)

// A maskPath is a path of a mask. It applies to every element of the arrays that it passes.
type maskPath struct {
	names   []string
	exclude bool
	text    string // for errors
}

// A maskNode is a node of the tree of the paths of a mask.
type maskNode struct {
	name     string
	sign     *maskPath // the path that ends here, or nil
	children []*maskNode
}

// ParseMask parses a list of paths, separated by commas. A path consists of names, separated by
// dots. A name with other characters than letters, digits, underscores, dollar signs, slashes and
// minus signs is written in brackets and quotes, as in metadata.labels['a.b/c'], where a backslash
// escapes a quote or a backslash. A minus before a path excludes it.
//
// The longest path that leads to a member decides about it. A member to which no path leads is
// shown if every path excludes a member, or adds one below an excluded path. An empty text is an
// error.
func ParseMask(text string) (*Mask, error) {
	if len(text) > maxMaskBytes {
		return nil, fmt.Errorf("must have at most %d bytes, got %d", maxMaskBytes, len(text))
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("not valid UTF-8")
	}
	root := new(maskNode)
	rest, more := text, true
	for n := 1; more; n++ {
		if n > maxMaskPaths {
			return nil, fmt.Errorf("must have at most %d paths", maxMaskPaths)
		}
		var p maskPath
		var err error
		if p, rest, more, err = cutMaskPath(rest); err != nil {
			return nil, err
		}
		if err := root.insert(&p); err != nil {
			return nil, err
		}
	}
	shown := root.part(!root.includes())
	m := &Mask{text: strings.Join(shown.paths(nil, ""), ",")}
	for _, path := range always {
		if !shown.covers(path) {
			shown = shown.with(path, everything)
		}
	}
	m.shown, m.compared = shown, shown.with([]string{"metadata", "resourceVersion"}, nothing)
	if shown.keep && memberOf(shown, "metadata").keep { // otherwise a path asks for the generation
		m.compared = m.compared.with([]string{"metadata", "generation"}, nothing)
	}
	return m, nil
}

// cutMaskPath returns the first path of text, and the text after the comma that follows it. more is
// false if there is no comma.
func cutMaskPath(text string) (p maskPath, rest string, more bool, err error) {
	rest, p.exclude = strings.CutPrefix(text, "-")
	for {
		var name string
		if name, rest, err = cutName(rest, len(p.names) == 0); err != nil {
			return p, rest, false, fmt.Errorf("path %q: %w", text[:len(text)-len(rest)], err)
		}
		p.names = append(p.names, name)
		if len(rest) == 0 || rest[0] == ',' {
			break
		}
	}
	p.text = text[:len(text)-len(rest)]
	if len(p.names) > maxMaskDepth {
		return p, rest, false, fmt.Errorf("path %q: must have at most %d names", p.text, maxMaskDepth)
	}
	if p.exclude && slices.ContainsFunc(always, func(a []string) bool {
		return len(p.names) >= len(a) && slices.Equal(p.names[:len(a)], a)
	}) {
		return p, rest, false, fmt.Errorf("path %q: this member is always shown", p.text)
	}
	rest, more = strings.CutPrefix(rest, ",")
	return p, rest, more, nil
}

// cutName returns the first name of text, with the dot or the brackets that it has unless it is the
// first name of its path.
func cutName(text string, first bool) (name, rest string, err error) {
	if rest, quoted := strings.CutPrefix(text, "['"); quoted {
		return cutQuoted(rest)
	}
	if !first {
		if !strings.HasPrefix(text, ".") {
			return "", text, fmt.Errorf("want a dot, a comma or a name in brackets before %q", text)
		}
		text = text[1:]
	}
	n := 0
	for n < len(text) && isNameByte(text[n]) {
		n++
	}
	switch {
	case n == 0 && text == "":
		return "", text, errors.New("a name is missing at the end")
	case n == 0:
		return "", text, fmt.Errorf("want a name before %q; indexes and wildcards are not supported", text)
	}
	return text[:n], text[n:], nil
}

func cutQuoted(text string) (name, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < ' ' || c == '\x7f':
			return "", text, errors.New("a name must not contain control characters")
		case c == '\\':
			if i++; i == len(text) || text[i] != '\\' && text[i] != '\'' {
				return "", text, errors.New("a backslash must be followed by a backslash or a quote")
			}
			b.WriteByte(text[i])
		case c == '\'':
			if i+1 == len(text) || text[i+1] != ']' {
				return "", text, fmt.Errorf("want a bracket after the name %q", b.String())
			}
			return b.String(), text[i+2:], nil
		default:
			b.WriteByte(c)
		}
	}
	return "", text, errors.New("a name in brackets must end with a quote and a bracket")
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-$/", c) >= 0
}

// insert adds p to the tree at n.
func (n *maskNode) insert(p *maskPath) error {
	for _, name := range p.names {
		i := slices.IndexFunc(n.children, func(c *maskNode) bool { return c.name == name })
		if i < 0 {
			i = len(n.children)
			n.children = append(n.children, &maskNode{name: name})
		}
		n = n.children[i]
	}
	if n.sign != nil && n.sign.exclude != p.exclude {
		return fmt.Errorf("path %q: the path is also given as %q", p.text, n.sign.text)
	}
	n.sign = p
	return nil
}

// includes reports whether a path adds n, or something below it that is not below an excluded path.
func (n *maskNode) includes() bool {
	if n.sign != nil {
		return !n.sign.exclude
	}
	return slices.ContainsFunc(n.children, (*maskNode).includes)
}

// part returns the part that the tree at n shows. keep is true if the paths above n show it. A path
// that only repeats this has no effect.
func (n *maskNode) part(keep bool) *part {
	if n.sign != nil {
		keep = !n.sign.exclude
	}
	p := &part{keep: keep}
	for _, c := range n.children {
		if member := c.part(keep); member.keep != keep || len(member.members) > 0 {
			p.members = append(p.members, partMember{c.name, member})
		}
	}
	slices.SortFunc(p.members, func(a, b partMember) int { return strings.Compare(a.name, b.name) })
	return p
}

// paths appends the paths that a canonical text needs: those that exclude what the path above them
// shows, or add what it excludes. above is the text of the path of p.
func (p *part) paths(all []string, above string) []string {
	for _, m := range p.members {
		text := above + nameText(m.name, above == "")
		if m.part.keep != p.keep {
			sign := ""
			if !m.part.keep {
				sign = "-"
			}
			all = append(all, sign+text)
		}
		all = m.part.paths(all, text)
	}
	return all
}

var maskEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// nameText returns name as it is written in a path.
func nameText(name string, first bool) string {
	for i := 0; i < len(name); i++ {
		if !isNameByte(name[i]) {
			return "['" + maskEscaper.Replace(name) + "']"
		}
	}
	switch {
	case name == "" || first && name[0] == '-':
		return "['" + name + "']"
	case first:
		return name
	}
	return "." + name
}
