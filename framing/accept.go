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
