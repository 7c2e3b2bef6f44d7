package framing

import (
	"fmt"
	"strings"
)

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
