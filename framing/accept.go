package framing

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
)

// A MediaRange is one element of an Accept header (RFC 9110 12.5.1), such as application/json;as=Table;q=0.5.
type MediaRange struct {
	// Type and Subtype are in lower case; "*" stands for all. Where Type is "*", Subtype is too.
	Type, Subtype string
	// Params are the parameters but for q. Names are in lower case, values as they were written, without quotes. nil: none.
	Params map[string]string
	// Q is the weight in thousandths, from 0, "not this", to 1000.
	Q int
}

// String returns m as an Accept header spells it, with its parameters in no particular order.
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

// ParseAccept reads the values of the Accept headers of a request, in the order of the client. Without any it returns nil.
//
// What is no Accept header is an error of code Invalid (400): 406 would say that it was understood. Three slips of real clients
// are let pass: empty elements, a lone * for */*, and a weight without its leading zero, as old versions of Java send them.
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
				err = p.want("a comma")
			}
			if err != nil {
				return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "read the Accept header", Message: excerpt([]byte(value)), Err: err}
			}
			ranges = append(ranges, m)
		}
	}
	return ranges, nil
}

// A headerParser reads the value of a header from left to right.
type headerParser struct{ rest string }

// end passes over space and reports whether nothing follows.
func (p *headerParser) end() bool {
	p.rest = strings.TrimLeft(p.rest, " \t")
	return p.rest == ""
}

// skip passes over space and over c, and reports whether c was there.
func (p *headerParser) skip(c byte) bool {
	if p.end() || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *headerParser) want(what string) error {
	if p.rest == "" {
		return fmt.Errorf("it ends where %s should be", what)
	}
	return fmt.Errorf("got %s, want %s", excerpt([]byte(p.rest)), what)
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
		return m, p.want("a slash")
	}
	if m.Type == "*" && m.Subtype != "*" {
		return m, fmt.Errorf("*/%s is no media range", m.Subtype)
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
		_, twice := m.Params[name]
		if twice || name == "q" && weighted {
			return fmt.Errorf("parameter %s comes twice", name)
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
		return "", "", p.want("=")
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
		return "", p.want(what)
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	return token, nil
}

// quoted reads a quoted-string (RFC 9110 5.6.4).
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
	return "", fmt.Errorf("a quote is not closed: %s", excerpt([]byte(p.rest)))
}

// parseWeight reads a qvalue (RFC 9110 12.4.2): 0 to 1 with at most three decimals.
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
		return 0, fmt.Errorf("weight %s, want a number from 0 to 1 with at most three decimals", excerpt([]byte(s)))
	}
	return q, nil
}

// isTokenByte reports whether c is a tchar (RFC 9110 5.6.2).
func isTokenByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// How specific a range is that matches; the step between them leaves room for parameters.
const (
	anything = 2
	anyOf    = 4
	alias    = 6
	exact    = 8
)

// matches returns how specific m is about a media type; zero: it does not match.
func (m MediaRange) matches(mediaType string) int {
	specific := anything
	switch m.Type + "/" + m.Subtype {
	case mediaType:
		specific = exact
	case "*/*":
	default:
		major, _, _ := strings.Cut(mediaType, "/")
		if m.Subtype != "*" || m.Type != major {
			return 0
		}
		specific = anyOf
	}
	if len(m.Params) == 0 {
		return specific
	}
	for name, value := range m.Params {
		if !harmless(name, value) {
			return 0
		}
	}
	return specific + 1 // RFC 9110 12.5.1: parameters make a range more specific
}

// harmless reports whether every framing fulfils a parameter by itself: all are UTF-8, and stream=watch is how Kubernetes' clients
// say what a watch is anyway. Any other parameter, such as as=Table, asks for another representation.
func harmless(name, value string) bool {
	switch name {
	case "charset":
		return strings.EqualFold(value, "utf-8") || strings.EqualFold(value, "utf8")
	case "stream":
		return value == "watch"
	}
	return false
}

// notAcceptable returns the 406 that lists what there is (RFC 9110 15.5.7).
func notAcceptable(accept, available []string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
		Message: fmt.Sprintf("nothing that Accept %s allows is available; available: %s",
			excerpt([]byte(strings.Join(accept, ", "))), strings.Join(available, ", ")),
	}
}
