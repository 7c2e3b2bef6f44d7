package listwatch

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ParseLabelSelector parses a label selector. A syntax error, or a key or value that no label can
// have, is an error of code [Invalid] that says what was expected where.
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
			return LabelSelector{}, &Error{Code: Invalid, Message: fmt.Sprintf("unable to parse label selector %q", s), Err: err}
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

// value parses the value after an equals sign, which may be empty.
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
	if err != nil || !isName(p.token, "") { // Kubernetes allows no sign, because no label value can have one
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

// checkLabelKey implements Kubernetes' "Labels and Selectors": a name of at most 63 characters, and
// before it an optional DNS subdomain of at most 253 characters and a slash.
func checkLabelKey(key string) error {
	name := key
	if prefix, rest, ok := strings.Cut(key, "/"); ok {
		name = rest
		if !isSubdomain(prefix) {
			return fmt.Errorf("label key %q: the prefix must be a lower-case DNS subdomain", key)
		}
	}
	if name == "" || len(name) > 63 || !isName(name, "-_.") {
		return fmt.Errorf("label key %q: the name must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends", key)
	}
	return nil
}

func checkLabelValue(value string) error {
	if len(value) > 63 || value != "" && !isName(value, "-_.") {
		return fmt.Errorf("label value %q: must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends", value)
	}
	return nil
}

// CheckLabels returns an error of code [Invalid] if a key or value is not valid in Kubernetes.
// The error has a cause for each of them, sorted by message.
func CheckLabels(labels map[string]string) error {
	var causes []Cause
	for k, v := range labels {
		for _, err := range []error{checkLabelKey(k), checkLabelValue(v)} {
			if err != nil {
				causes = append(causes, Cause{Reason: CauseInvalid, Message: err.Error(), Field: "metadata.labels"})
			}
		}
	}
	if causes == nil {
		return nil
	}
	slices.SortFunc(causes, func(a, b Cause) int { return strings.Compare(a.Message, b.Message) })
	return &Error{
		Code: Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "metadata.labels: " + causes[0].Message, Details: &Details{Causes: causes},
	}
}

// ParseFieldSelector parses a field selector. A syntax error is an error of code [Invalid]. It
// does not know which fields exist; see [FieldSelector.Check].
func ParseFieldSelector(s string) (FieldSelector, error) {
	var terms []fieldTerm
	for _, part := range splitUnescaped(s) {
		if part == "" {
			continue
		}
		t, err := parseFieldTerm(part)
		if err != nil {
			return FieldSelector{}, &Error{Code: Invalid, Message: fmt.Sprintf("unable to parse field selector %q", s), Err: err}
		}
		terms = append(terms, t)
	}
	if terms == nil {
		return FieldSelector{}, nil
	}
	return newFieldSelector(terms), nil
}

// splitUnescaped splits s at each comma that is not escaped by a backslash.
func splitUnescaped(s string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

func parseFieldTerm(part string) (fieldTerm, error) {
	for i := range len(part) {
		for _, op := range []string{"!=", "==", "="} {
			if !strings.HasPrefix(part[i:], op) {
				continue
			}
			t := fieldTerm{path: strings.TrimSpace(part[:i]), not: op == "!="}
			if t.path == "" || strings.ContainsAny(t.path, "! \\") {
				return t, fmt.Errorf("%q: must have the path of a field before %q, got %q", part, op, t.path)
			}
			var err error
			t.value, err = unescapeField(part[i+len(op):])
			return t, err
		}
	}
	return fieldTerm{}, fmt.Errorf("%q: must have the form field=value, field==value or field!=value", part)
}

func unescapeField(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) || strings.IndexByte(`\,=`, s[i]) < 0 {
				return "", fmt.Errorf(`value %q: a backslash must be followed by a backslash, a comma or an equals sign`, s)
			}
			b.WriteByte(s[i])
		case '=':
			return "", fmt.Errorf("value %q: an equals sign must have a backslash before it", s)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
