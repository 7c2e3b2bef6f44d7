package framing

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
)

// A MediaRange is one element of an Accept header (RFC 9110 12.5.1), such as
// application/json;as=Table;q=0.5.
type MediaRange struct {
	// Type and Subtype are in lower case. "*" matches all. If Type is "*", Subtype is "*" too.
	Type, Subtype string
	// Params holds the parameters except q. Names are in lower case. Values are as written, without
	// quotes. It is nil if there are no parameters.
	Params map[string]string
	// Q is the weight in thousandths, from 0, which excludes the range, to 1000.
	Q int
}

// String returns m in the syntax of an Accept header. The order of the parameters is random.
func (m MediaRange) String() string {
	var s strings.Builder
	s.WriteString(m.Type + "/" + m.Subtype)
	for name, value := range m.Params {
		s.WriteString(";" + name + "=")
		p := headerParser{rest: value}
		if token, err := p.token(""); err == nil && token == value {
			s.WriteString(value)
			continue
		}
		s.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`)
	}
	if m.Q < 1000 {
		fmt.Fprintf(&s, ";q=0.%03d", max(m.Q, 0))
	}
	return s.String()
}

// ParseAccept parses the values of the Accept headers of a request, in their order. It returns
// nil if there are no elements.
//
// A syntax error is an error of code Invalid (400), because 406 would mean that the server
// understood the header. Three deviations of real clients are accepted: empty elements, * instead
// of */*, and a weight without a leading zero. Old versions of Java send them.
func ParseAccept(accept []string) ([]MediaRange, error) {
	var ranges []MediaRange
	for _, value := range accept {
		p := headerParser{rest: value}
		for !p.end() {
			if p.skip(',') {
				continue
			}
			m, err := p.mediaRange()
			if err == nil && !p.end() && !p.skip(',') {
				err = p.expected("a comma")
			}
			if err != nil {
				return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "parse the Accept header", Message: excerpt([]byte(value)), Err: err}
			}
			ranges = append(ranges, m)
		}
	}
	return ranges, nil
}

// A headerParser parses the value of a header from left to right.
type headerParser struct{ rest string }

// end skips space and reports whether it is at the end.
func (p *headerParser) end() bool {
	p.rest = strings.TrimLeft(p.rest, " \t")
	return p.rest == ""
}

// skip skips space and c. It reports false if c does not follow.
func (p *headerParser) skip(c byte) bool {
	if p.end() || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *headerParser) expected(what string) error {
	if p.rest == "" {
		return fmt.Errorf("found the end, expected %s", what)
	}
	return fmt.Errorf("found %s, expected %s", excerpt([]byte(p.rest)), what)
}

func (p *headerParser) mediaRange() (m MediaRange, err error) {
	m.Q = 1000
	if m.Type, err = p.token("a media type"); err != nil {
		return m, err
	}
	m.Type = strings.ToLower(m.Type)
	switch {
	case strings.HasPrefix(p.rest, "/"):
		p.rest = p.rest[1:]
		if m.Subtype, err = p.token("a subtype"); err != nil {
			return m, err
		}
		m.Subtype = strings.ToLower(m.Subtype)
	case m.Type == "*":
		m.Subtype = "*"
	default:
		return m, p.expected("a slash")
	}
	if m.Type == "*" && m.Subtype != "*" {
		return m, fmt.Errorf("*/%s is not a media range", m.Subtype)
	}
	return m, p.parameters(&m)
}

func (p *headerParser) parameters(m *MediaRange) error {
	weighted := false
	for p.skip(';') {
		if p.end() || p.rest[0] == ';' || p.rest[0] == ',' {
			continue // RFC 9110 5.6.6 allows empty parameters
		}
		name, value, err := p.parameter()
		if err != nil {
			return err
		}
		_, duplicate := m.Params[name]
		if duplicate || name == "q" && weighted {
			return fmt.Errorf("duplicate parameter %s", name)
		}
		if name == "q" {
			weighted = true
			if m.Q, err = parseWeight(value); err != nil {
				return err
			}
			continue
		}
		if m.Params == nil {
			m.Params = make(map[string]string)
		}
		m.Params[name] = value
	}
	return nil
}

func (p *headerParser) parameter() (name, value string, err error) {
	if name, err = p.token("a parameter"); err != nil {
		return "", "", err
	}
	if !strings.HasPrefix(p.rest, "=") {
		return "", "", p.expected("=")
	}
	p.rest = p.rest[1:]
	if strings.HasPrefix(p.rest, `"`) {
		value, err = p.quoted()
	} else {
		value, err = p.token("the value of a parameter")
	}
	return strings.ToLower(name), value, err
}

func (p *headerParser) token(what string) (string, error) {
	p.end()
	n := 0
	for n < len(p.rest) && isTokenByte(p.rest[n]) {
		n++
	}
	if n == 0 {
		return "", p.expected(what)
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	return token, nil
}

// quoted parses a quoted-string (RFC 9110 5.6.4).
func (p *headerParser) quoted() (string, error) {
	var value []byte
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return string(value), nil
		case c == '\\' && i+1 < len(p.rest):
			i++
			value = append(value, p.rest[i])
		default:
			value = append(value, c)
		}
	}
	return "", fmt.Errorf("missing closing quote: %s", excerpt([]byte(p.rest)))
}

// parseWeight parses a qvalue (RFC 9110 12.4.2), a number from 0 to 1 with at most three decimals.
func parseWeight(s string) (int, error) {
	whole, decimals, _ := strings.Cut(s, ".")
	q, unit := 0, 1000
	ok := (whole == "0" || whole == "1" || whole == "" && decimals != "") && len(decimals) <= 3
	if whole == "1" {
		q = unit
	}
	for _, c := range []byte(decimals) {
		unit /= 10
		q += int(c-'0') * unit
		ok = ok && isDigit(c)
	}
	if !ok || q > 1000 {
		return 0, fmt.Errorf("weight %s: must be a number from 0 to 1 with at most three decimals", excerpt([]byte(s)))
	}
	return q, nil
}

// isTokenByte reports whether c is a tchar (RFC 9110 5.6.2).
func isTokenByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// The specificity of a media range that matches. A range with parameters has one more.
const (
	matchesAll     = 2 // */*
	matchesType    = 4 // type/*
	matchesAlias   = 6 // another name of the media type
	matchesExactly = 8
)

// specificity returns the specificity of m for a media type, or zero if m does not match it.
func (m MediaRange) specificity(mediaType string) int {
	specificity := matchesAll
	switch m.Type + "/" + m.Subtype {
	case mediaType:
		specificity = matchesExactly
	case "*/*":
	default:
		major, _, _ := strings.Cut(mediaType, "/")
		if m.Subtype != "*" || m.Type != major {
			return 0
		}
		specificity = matchesType
	}
	if len(m.Params) == 0 {
		return specificity
	}
	for name, value := range m.Params {
		if !isImplied(name, value) {
			return 0
		}
	}
	return specificity + 1 // RFC 9110 12.5.1: parameters make a range more specific
}

// isImplied reports whether every framing fulfills a parameter: all of them are UTF-8, and
// Kubernetes' clients send stream=watch for a watch. Any other parameter, such as as=Table, asks
// for another representation.
func isImplied(name, value string) bool {
	switch name {
	case "charset":
		return strings.EqualFold(value, "utf-8") || strings.EqualFold(value, "utf8")
	case "stream":
		return value == "watch"
	}
	return false
}

// notAcceptable returns the error of a 406 response, which lists the available media types (RFC
// 9110 15.5.7).
func notAcceptable(accept, available []string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
		Message: fmt.Sprintf("no media type that Accept %s allows is available; available: %s",
			excerpt([]byte(strings.Join(accept, ", "))), strings.Join(available, ", ")),
	}
}
