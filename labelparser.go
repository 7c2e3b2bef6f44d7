package listwatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseLabelSelector parses a label selector. If s has a syntax error, or a key or value that no
// label can have, the error has code [Invalid]. For a syntax error, the message contains the
// position and the expected token.
func ParseLabelSelector(s string) (LabelSelector, error) {
	p := labelParser{text: s}
	p.next()
	if p.token == "" {
		return LabelSelector{}, nil
	}
	var terms []labelTerm
	for {
		t, err := p.term()
		if err != nil {
			return LabelSelector{}, &Error{
				Code: Invalid, Message: fmt.Sprintf("unable to parse label selector %q: %v", s, err),
			}
		}
		terms = append(terms, t)
		if p.token == "" {
			return newLabelSelector(terms), nil
		}
		p.next() // skip the comma
	}
}

// A labelParser splits a label selector into tokens. A token is an operator or a word.
type labelParser struct {
	text  string
	token string // the current token; empty at the end
	at    int    // the index of the current token in text
	pos   int    // the index after the current token
}

const labelSymbols = "=!(),<>"

func (p *labelParser) next() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	p.at = p.pos
	rest := p.text[p.pos:]
	n := strings.IndexAny(rest, labelSymbols+" \t\r\n")
	switch {
	case n < 0:
		n = len(rest)
	case n > 0:
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!="):
		n = 2
	default:
		n = 1
	}
	p.token = rest[:n]
	p.pos += n
}

func (p *labelParser) isWord() bool {
	return p.token != "" && strings.IndexByte(labelSymbols, p.token[0]) < 0
}

func (p *labelParser) expected(what string) error {
	if p.token == "" {
		return fmt.Errorf("found the end, expected %s", what)
	}
	return fmt.Errorf("found %q at byte %d, expected %s", p.token, p.at, what)
}

func (p *labelParser) term() (labelTerm, error) {
	absent := p.token == "!"
	if absent {
		p.next()
	}
	if !p.isWord() {
		return labelTerm{}, p.expected("a label key")
	}
	t := labelTerm{key: p.token, op: opExists}
	if err := checkLabelKey(t.key); err != nil {
		return t, err
	}
	p.next()
	if absent {
		t.op = opAbsent
		return t, p.atEndOfTerm()
	}
	var err error
	switch p.token {
	case "", ",":
		return t, nil
	case "=", "==":
		t.op = opIn
		t.values, err = p.value()
	case "!=":
		t.op = opNotIn
		t.values, err = p.value()
	case "in":
		t.op = opIn
		t.values, err = p.list()
	case "notin":
		t.op = opNotIn
		t.values, err = p.list()
	case ">", "<":
		t.op = opGreater
		if p.token == "<" {
			t.op = opLess
		}
		t.number, err = p.integer()
	default:
		return t, p.expected("one of = == != in notin < > or a comma")
	}
	if err != nil {
		return t, err
	}
	return t, p.atEndOfTerm()
}

func (p *labelParser) atEndOfTerm() error {
	if p.token == "" || p.token == "," {
		return nil
	}
	return p.expected("a comma or the end")
}

// value parses the value after an equals sign. The value may be empty.
func (p *labelParser) value() ([]string, error) {
	p.next()
	if !p.isWord() {
		return []string{""}, nil
	}
	v := p.token
	p.next()
	return []string{v}, checkLabelValue(v)
}

func (p *labelParser) integer() (int64, error) {
	p.next()
	n, err := strconv.ParseInt(p.token, 10, 64)
	// Kubernetes allows no sign, because a label value cannot begin with a sign.
	if err != nil || !isName(p.token, "") {
		return 0, p.expected("an integer without a sign")
	}
	p.next()
	return n, nil
}

// list parses "(a,b)". An element may be empty.
func (p *labelParser) list() ([]string, error) {
	p.next()
	if p.token != "(" {
		return nil, p.expected("an opening parenthesis")
	}
	var values []string
	for {
		p.next()
		v := ""
		if p.isWord() {
			v = p.token
			p.next()
		}
		if err := checkLabelValue(v); err != nil {
			return nil, err
		}
		values = append(values, v)
		switch p.token {
		case ",":
		case ")":
			p.next()
			slices.Sort(values)
			return slices.Compact(values), nil
		default:
			return nil, p.expected("a comma or a closing parenthesis")
		}
	}
}
