package httpheader

import (
	"fmt"
	"strings"
)

// A Parser parses the value of a header from left to right. Rest is the unread part of the value.
type Parser struct{ Rest string }

// AtEnd skips white space and reports whether the value has been read completely.
func (p *Parser) AtEnd() bool {
	p.Rest = strings.TrimLeft(p.Rest, " \t")
	return p.Rest == ""
}

// Skip skips white space and the byte c. It returns false if c does not follow.
func (p *Parser) Skip(c byte) bool {
	if p.AtEnd() || p.Rest[0] != c {
		return false
	}
	p.Rest = p.Rest[1:]
	return true
}

// Expected returns an error that contains the unread text and the expected syntax.
func (p *Parser) Expected(what string) error {
	if p.Rest == "" {
		return fmt.Errorf("found the end, expected %s", what)
	}
	return fmt.Errorf("found %.64q, expected %s", p.Rest, what)
}

// Parameter parses name=value. The name is returned in lower case.
func (p *Parser) Parameter() (name, value string, err error) {
	if name, err = p.Token("a parameter"); err != nil {
		return "", "", err
	}
	if !strings.HasPrefix(p.Rest, "=") {
		return "", "", p.Expected("=")
	}
	p.Rest = p.Rest[1:]
	if strings.HasPrefix(p.Rest, `"`) {
		value, err = p.quoted()
	} else {
		value, err = p.Token("the value of a parameter")
	}
	return strings.ToLower(name), value, err
}

// Token skips white space and parses a token (RFC 9110 5.6.2). what describes the token in an
// error.
func (p *Parser) Token(what string) (string, error) {
	p.AtEnd()
	n := 0
	for n < len(p.Rest) && isTokenByte(p.Rest[n]) {
		n++
	}
	if n == 0 {
		return "", p.Expected(what)
	}
	token := p.Rest[:n]
	p.Rest = p.Rest[n:]
	return token, nil
}

// quoted parses a quoted-string (RFC 9110 5.6.4).
func (p *Parser) quoted() (string, error) {
	var value []byte
	for i := 1; i < len(p.Rest); i++ {
		switch c := p.Rest[i]; {
		case c == '"':
			p.Rest = p.Rest[i+1:]
			return string(value), nil
		case c == '\\' && i+1 < len(p.Rest):
			i++
			value = append(value, p.Rest[i])
		default:
			value = append(value, c)
		}
	}
	return "", fmt.Errorf("missing closing quote: %.64q", p.Rest)
}

// isTokenByte reports whether c is a tchar (RFC 9110 5.6.2).
func isTokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
