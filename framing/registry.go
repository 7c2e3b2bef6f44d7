package framing

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// A Registry holds the framings that a server offers, the preferred one first. It is immutable
// and safe for concurrent use.
type Registry struct {
	framers []Framer
}

// NewRegistry returns a Registry of framers. A client without a preference gets the first one.
// NewRegistry returns an error of code Invalid if there are no framers, if a media type is not
// a type/subtype in lower case, if a subprotocol is invalid (see [SubprotocolFramer]), or if two
// framers have the same media type or subprotocol.
func NewRegistry(framers ...Framer) (*Registry, error) {
	if len(framers) == 0 {
		return nil, registryError("no framers")
	}
	r := &Registry{}
	for _, f := range framers {
		if f == nil {
			return nil, registryError("a framer is nil")
		}
		mediaType := f.MediaType()
		if !isMediaType(mediaType) {
			return nil, registryError(fmt.Sprintf("media type %q: must be type/subtype in lower case", mediaType))
		}
		if _, ok := r.Lookup(mediaType); ok {
			return nil, registryError("two framers have media type " + mediaType)
		}
		if name := SubprotocolOf(f); name != "" {
			if !isToken(name) || name == anyFraming {
				return nil, registryError(
					fmt.Sprintf("subprotocol %q of %s: must be a token other than %q", name, mediaType, anyFraming))
			}
			if _, ok := r.LookupSubprotocol(name); ok {
				return nil, registryError("two framers have subprotocol " + name)
			}
		}
		r.framers = append(r.framers, f)
	}
	return r, nil
}

func registryError(message string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "create a registry of framings", Message: message}
}

func isMediaType(s string) bool {
	p := httpheader.Parser{Rest: s}
	m, err := parseMediaRange(&p)
	return err == nil && s == m.Type+"/"+m.Subtype && !strings.Contains(s, "*")
}

// anyFraming is the subprotocol of clients that leave the framing to the server, as Kubernetes'
// clients do.
const anyFraming = "v1"

func isToken(s string) bool {
	p := httpheader.Parser{Rest: s}
	token, err := p.Token("a token")
	return err == nil && token == s
}

var defaultRegistry = sync.OnceValue(func() *Registry {
	return &Registry{framers: []Framer{JSON{}, SSE{}, JSONSeq{}, CBORSeq{}, LengthPrefixed{}}}
})

// Default returns the framings of this package, [JSON] first.
func Default() *Registry { return defaultRegistry() }

// Framers returns the framings, the preferred one first. The caller may modify the slice.
func (r *Registry) Framers() []Framer { return slices.Clone(r.framers) }

// Lookup returns the framer for the value of a Content-Type header. It ignores parameters, except
// that a charset other than UTF-8 matches no framer.
func (r *Registry) Lookup(contentType string) (Framer, bool) {
	p := httpheader.Parser{Rest: contentType}
	m, err := parseMediaRange(&p)
	if err != nil || !p.AtEnd() {
		return nil, false
	}
	if charset, ok := m.Params["charset"]; ok {
		if _, supported := isFulfilled("charset", charset); !supported {
			return nil, false
		}
	}
	for _, f := range r.framers {
		if f.MediaType() == m.Type+"/"+m.Subtype {
			return f, true
		}
	}
	return nil, false
}

// LookupSubprotocol returns the framer whose WebSocket subprotocol is name.
func (r *Registry) LookupSubprotocol(name string) (Framer, bool) {
	i := slices.IndexFunc(r.framers, func(f Framer) bool { return name != "" && SubprotocolOf(f) == name })
	if i < 0 {
		return nil, false
	}
	return r.framers[i], true
}

// Negotiate returns the framer that the Accept headers of a request prefer (RFC 9110 12.5.1).
// accept are the media ranges in these headers; see [ParseAccept]. If messages is true, only a
// [MessageFramer] is considered.
//
// The weight of a framer is the weight of the most specific range that matches it. Weight zero
// excludes the framer. Among equal weights, the more specific range wins, then the range listed
// first, then the framer registered first. So */*, or no Accept header, selects the first framer.
// The range application/cbor, which Kubernetes' clients send, matches application/cbor-seq and
// selects [CBORSeq] in the form for these clients. A range with the parameter as, g or v matches no
// framer, because it requests another representation, and so does one with a charset other than
// utf-8 or a stream other than watch. Other parameters are ignored.
//
// If no framer matches, the error has code Unsupported and status 406, and lists the available
// media types.
func (r *Registry) Negotiate(accept []MediaRange, messages bool) (Framer, error) {
	if len(accept) == 0 {
		accept = []MediaRange{{Type: "*", Subtype: "*", Q: 1000}}
	}
	var best Framer
	var bestRank acceptRank
	var available []string
	for _, f := range r.framers {
		if _, ok := f.(MessageFramer); messages && !ok {
			continue
		}
		available = append(available, f.MediaType())
		if r := rankOf(f.MediaType(), accept); r.q > 0 && (best == nil || r.better(bestRank)) {
			best, bestRank = f, r
		}
	}
	if best == nil {
		return nil, notAcceptable(accept, available)
	}
	if best == (CBORSeq{}) && bestRank.specificity == matchesAlias {
		return CBORSeq{Kubernetes: true}, nil
	}
	return best, nil
}

// An acceptRank is the rank of a media type in an Accept header.
type acceptRank struct {
	q           int
	specificity int
	position    int // the index of the range in the header
}

func (r acceptRank) better(other acceptRank) bool {
	if r.q != other.q {
		return r.q > other.q
	}
	if a, b := r.class(), other.class(); a != b {
		return a > b
	}
	return r.position < other.position
}

// class returns the specificity for comparing two media types. Parameters do not count, and an
// alias counts like the exact name.
func (r acceptRank) class() int { return min(r.specificity&^1, matchesAlias) }

// rankOf returns the rank of mediaType, which the most specific matching range determines. If
// several ranges are equally specific, the one with the greatest weight counts.
func rankOf(mediaType string, ranges []MediaRange) acceptRank {
	var best acceptRank
	for position, m := range ranges {
		specificity := m.specificity(mediaType)
		if specificity == 0 && mediaType == (CBORSeq{}).MediaType() &&
			m.specificity("application/cbor") >= matchesExactly {
			specificity = matchesAlias
		}
		if specificity > best.specificity || specificity > 0 && specificity == best.specificity && m.Q > best.q {
			best = acceptRank{m.Q, specificity, position}
		}
	}
	return best
}
