package loop

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// pseudoHeaders are the pseudo-headers of a request (RFC 9113, section 8.3.1, and RFC 8441, section
// 4).
type pseudoHeaders struct {
	method, scheme, authority, path, protocol string

	seen uint8 // a bit for each pseudo-header that has occurred
}

// protocolField is the pseudo-header with the protocol of an extended CONNECT. It is also the key
// of this protocol in the http.Header of the request.
const protocolField = ":protocol"

var (
	errPseudoOrder = errors.New("a pseudo-header follows a field or occurs twice")
	errPseudo      = errors.New("the pseudo-headers are incomplete or unknown")
	errTarget      = errors.New("the request target is invalid")
)

// set sets the pseudo-header f.
func (p *pseudoHeaders) set(f hpack.HeaderField) error {
	var value *string
	bit := uint8(0)
	switch f.Name {
	case ":method":
		value, bit = &p.method, 1
	case ":scheme":
		value, bit = &p.scheme, 2
	case ":authority":
		value, bit = &p.authority, 4
	case ":path":
		value, bit = &p.path, 8
	case protocolField:
		value, bit = &p.protocol, 16
	default:
		return errPseudo
	}
	if p.seen&bit != 0 {
		return errPseudoOrder
	}
	p.seen |= bit
	*value = f.Value
	return nil
}

// setTarget sets the URL of r, whose method and RequestURI come from p.
func (p *pseudoHeaders) setTarget(r *http.Request, extendedConnect bool) (err error) {
	isConnect := p.method == http.MethodConnect
	switch {
	case !httpguts.ValidHeaderFieldName(p.method), !validHost(p.authority):
		return errPseudo
	case p.protocol != "" && !(isConnect && extendedConnect):
		return errPseudo
	case isConnect && p.protocol == "":
		if p.path != "" || p.scheme != "" || p.authority == "" {
			return errPseudo
		}
		r.URL, r.RequestURI = &url.URL{Host: p.authority}, p.authority
		return nil
	case p.path == "" || p.scheme != "https" && p.scheme != "http":
		return errPseudo
	case p.path[0] != '/' && (p.path != "*" || p.method != http.MethodOptions):
		return errTarget
	}
	if r.URL, err = url.ParseRequestURI(p.path); err != nil {
		return errTarget
	}
	return nil
}

// validHost reports whether a host may be in :authority or Host: without userinfo (RFC 9113,
// section 8.3.1), and without the other parts of a URL.
func validHost(host string) bool {
	return httpguts.ValidHostHeader(host) && !strings.ContainsAny(host, "@/?# ")
}
