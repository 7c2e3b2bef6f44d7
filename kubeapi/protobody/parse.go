package protobody

import (
	"fmt"
	"strconv"
	"strings"
)

// A parser parses a table of messages. A line contains the name of a message and, if it is
// an object, its apiVersion. Its fields follow, in the order in which encoding/json writes
// them, each on a line that starts with a tab and consists of number, name and type.
//
//	package example.v1
//	Widget example.com/v1
//		1 metadata! meta.v1.ObjectMeta
//		2 labels map[string]string
//		3 . WidgetSpec
//	WidgetSpec
//		1 parts []Part
//		2 since *time
//
// A field is omitted if it is empty. If its name ends in !, it is never omitted. If its
// name ends in ?, it is omitted if it is zero. If the name is a dot, the members of the
// message are inlined. A type is a scalar or a message, whose name starts with a capital
// letter. It may be preceded by *, [] or map[string]. Messages without a package belong to
// the package of the preceding package line. Lines that start with # are comments.
type parser struct {
	kinds    map[string]*message
	messages map[string]*message
	defined  map[*message]bool
	prefix   string // the package and a dot
	current  *message
}

func parse(text string) (*messageTable, error) {
	p := parser{kinds: map[string]*message{}, messages: map[string]*message{}, defined: map[*message]bool{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	for name, m := range p.messages {
		if !p.defined[m] {
			return nil, fmt.Errorf("the message %s is used but not defined", name)
		}
	}
	return &messageTable{p.kinds}, nil
}

func (p *parser) line(line string) error {
	field, isField := strings.CutPrefix(line, "\t")
	name, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "" || line[0] == '#':
		return nil
	case isField && p.current == nil:
		return fmt.Errorf("%q: a field precedes the first message", field)
	case isField:
		return p.field(field)
	case name == "package":
		p.prefix, p.current = rest+".", nil
		return nil
	}
	p.current = p.message(name)
	if p.defined[p.current] {
		return fmt.Errorf("%q: the message is defined twice", name)
	}
	p.defined[p.current] = true
	if rest != "" {
		p.kinds[kindKey(rest, name)] = p.current
	}
	return nil
}

func (p *parser) message(name string) *message {
	if !strings.Contains(name, ".") {
		name = p.prefix + name
	}
	if p.messages[name] == nil {
		p.messages[name] = &message{name: name, byNumber: map[uint64]int{}}
	}
	return p.messages[name]
}

func (p *parser) field(line string) error {
	words := strings.Split(line, " ")
	if len(words) != 3 {
		return fmt.Errorf("%q: must be a number, a name and a type", line)
	}
	number, err := strconv.ParseUint(words[0], 10, 29)
	if err != nil || number == 0 {
		return fmt.Errorf("%q: must be a field number", words[0])
	}
	f := field{number: number, name: words[1]}
	if err := p.typeOf(&f, words[2]); err != nil {
		return err
	}
	if name, always := strings.CutSuffix(f.name, "!"); always {
		f.name, f.omit = name, omitNever
	}
	if name, zero := strings.CutSuffix(f.name, "?"); zero {
		if f.name, f.omit = name, omitZero; f.scalar != scalarTime || f.cardinality != single {
			return fmt.Errorf("%q: only a time can be omitted if it is zero", line)
		}
	}
	if f.name == "." {
		if f.name = ""; f.message == nil || f.cardinality != single {
			return fmt.Errorf("%q: only a message has members", line)
		}
	}
	return p.current.add(f)
}

func (p *parser) typeOf(f *field, s string) error {
	for prefix, shape := range map[string]cardinality{"*": optional, "[]": repeated, "map[string]": mapped} {
		if of, ok := strings.CutPrefix(s, prefix); ok {
			f.cardinality, s = shape, of
			break
		}
	}
	name := s[strings.LastIndexByte(s, '.')+1:]
	switch {
	case name != "" && name[0] >= 'A' && name[0] <= 'Z':
		f.message = p.message(s)
	case scalarType(s).isKnown():
		f.scalar = scalarType(s)
	default:
		return fmt.Errorf("%q is neither a scalar nor a message", s)
	}
	if f.cardinality != mapped {
		return nil
	}
	f.entry = &message{name: "an entry of " + p.current.name + "." + f.name, byNumber: map[uint64]int{}}
	if err := f.entry.add(field{number: 1, scalar: scalarString}); err != nil {
		return err
	}
	return f.entry.add(field{number: 2, omit: omitNever, scalar: f.scalar, message: f.message})
}
