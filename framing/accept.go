package framing

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// A MediaRange is one element of an Accept header (RFC 9110 12.5.1), such as
// application/json;as=Table;q=0.5.
type MediaRange struct {
	// Type and Subtype are in lower case. "*" matches all. If Type is "*", Subtype is "*" too.
	Type, Subtype string
	// Params holds the parameters except q. Names are in lower case. Values are as written, without
	// quotes. Params is nil if there are no parameters.
	Params map[string]string
	// Q is the weight in thousandths, from 0, which excludes the range, to 1000.
	Q int
}

// String returns m in the syntax of an Accept header, with its parameters sorted by name.
func (m MediaRange) String() string {
	s := mime.FormatMediaType(m.Type+"/"+m.Subtype, m.Params)
	if m.Q < 1000 {
		s += fmt.Sprintf("; q=0.%03d", max(m.Q, 0))
	}
	return s
}

// ParseAccept parses the values of the Accept headers of a request, in their order. It returns
// nil if there are no elements.
//
// A syntax error is an error of code Unsupported (406), as in Kubernetes. Three deviations are
// accepted because real clients send them: empty elements and, from old versions of Java,
// * instead of */* and a weight without a leading zero.
func ParseAccept(accept []string) ([]MediaRange, error) {
	var ranges []MediaRange
	for _, value := range accept {
		p := httpheader.Parser{Rest: value}
		for !p.AtEnd() {
			if p.Skip(',') {
				continue
			}
			m, err := parseMediaRange(&p)
			if err == nil && !p.AtEnd() && !p.Skip(',') {
				err = p.Expected("a comma")
			}
			if err != nil {
				return nil, &listwatch.Error{
					Code: listwatch.Unsupported, Op: "parse the Accept header",
					Message: excerpt([]byte(value)) + ": " + err.Error(),
				}
			}
			ranges = append(ranges, m)
		}
	}
	return ranges, nil
}

func parseMediaRange(p *httpheader.Parser) (m MediaRange, err error) {
	m.Q = 1000
	if m.Type, err = p.Token("a media type"); err != nil {
		return m, err
	}
	m.Type = strings.ToLower(m.Type)
	switch {
	case strings.HasPrefix(p.Rest, "/"):
		p.Rest = p.Rest[1:]
		if m.Subtype, err = p.Token("a subtype"); err != nil {
			return m, err
		}
		m.Subtype = strings.ToLower(m.Subtype)
	case m.Type == "*":
		m.Subtype = "*"
	default:
		return m, p.Expected("a slash")
	}
	if m.Type == "*" && m.Subtype != "*" {
		return m, fmt.Errorf("*/%s is not a media range", m.Subtype)
	}
	return m, parseParameters(p, &m)
}

// parseParameters parses the parameters of a media range, including its weight, and stores them in
// m.
func parseParameters(p *httpheader.Parser, m *MediaRange) error {
	weighted := false
	for p.Skip(';') {
		if p.AtEnd() || p.Rest[0] == ';' || p.Rest[0] == ',' {
			continue // RFC 9110 5.6.6 allows empty parameters
		}
		name, value, err := p.Parameter()
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
		ok = ok && c >= '0' && c <= '9'
	}
	if !ok || q > 1000 {
		return 0, fmt.Errorf("weight %s: must be a number from 0 to 1 with at most three decimals", excerpt([]byte(s)))
	}
	return q, nil
}

// These are the specificities of a matching media range without parameters. With parameters, the
// specificity is one higher.
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
	for name, value := range m.Params {
		switch known, fulfilled := isFulfilled(name, value); {
		case known && !fulfilled:
			return 0
		case known:
			specificity |= 1 // RFC 9110 12.5.1: parameters make a range more specific
		}
	}
	return specificity
}

// isFulfilled reports whether a parameter is known and whether every framing fulfills it: all
// framings are UTF-8, and Kubernetes' clients send stream=watch for a watch. as, g and v request
// another representation. Unknown parameters are ignored, as in kube-apiserver.
func isFulfilled(name, value string) (known, fulfilled bool) {
	switch name {
	case "charset":
		return true, strings.EqualFold(value, "utf-8") || strings.EqualFold(value, "utf8")
	case "stream":
		return true, value == "watch"
	case "as", "g", "v":
		return true, false
	}
	return false, false
}

// notAcceptable returns the error for a 406 response, which lists the available media types
// (RFC 9110 15.5.7).
func notAcceptable(accept []MediaRange, available []string) error {
	if len(available) == 0 {
		return &listwatch.Error{
			Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
			Message: "the server has no framing for the encoding of the objects",
		}
	}
	ranges := make([]string, len(accept))
	for i, m := range accept {
		ranges[i] = m.String()
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
		Message: fmt.Sprintf("no media type that Accept %s allows is available; available: %s",
			excerpt([]byte(strings.Join(ranges, ", "))), strings.Join(available, ", ")),
	}
}
