package framing

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Registry holds the framings on offer, in order of preference. It never changes and is safe for concurrent use.
type Registry struct {
	framers []Framer
}

// NewRegistry returns a Registry of framers; the first is what a client gets that doesn't care. None at all, a media type that is
// no type/subtype in lower case, and two framers of one media type are errors of code Invalid.
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
			return nil, registryError(fmt.Sprintf("media type %q, want type/subtype in lower case", mediaType))
		}
		if _, ok := r.Lookup(mediaType); ok {
			return nil, registryError("two framers of media type " + mediaType)
		}
		r.framers = append(r.framers, f)
	}
	return r, nil
}

func registryError(message string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "make a registry of framings", Message: message}
}

func isMediaType(s string) bool {
	p := headerParser{rest: s}
	m, err := p.mediaRange()
	return err == nil && s == m.Type+"/"+m.Subtype && !strings.Contains(s, "*")
}

var defaultRegistry = sync.OnceValue(func() *Registry {
	return &Registry{framers: []Framer{JSON{}, SSE{}, JSONSeq{}, CBORSeq{}, LengthPrefixed{}}}
})

// Default returns the framings of this package, [JSON] first.
func Default() *Registry { return defaultRegistry() }

// Framers returns the framings in order of preference. The slice is the caller's.
func (r *Registry) Framers() []Framer { return slices.Clone(r.framers) }

// Lookup returns the framer of a Content-Type. Its parameters are not looked at, but for a charset that is not UTF-8, which no
// framing is.
func (r *Registry) Lookup(contentType string) (Framer, bool) {
	p := headerParser{rest: contentType}
	m, err := p.mediaRange()
	if err != nil || !p.end() {
		return nil, false
	}
	if charset, ok := m.Params["charset"]; ok && !harmless("charset", charset) {
		return nil, false
	}
	for _, f := range r.framers {
		if f.MediaType() == m.Type+"/"+m.Subtype {
			return f, true
		}
	}
	return nil, false
}

// Negotiate returns the framer that the Accept headers of a request like best (RFC 9110 12.5.1); messages leaves only those that
// are a [MessageFramer]. The weight of a framer is that of the most specific range it matches, zero excludes it. Of equal weights
// the more specific range wins, then the one listed first, then the framer registered first; so no Accept and */* give the first
// framer. application/cbor stands for application/cbor-seq, as Kubernetes' clients ask. A range with parameters other than
// charset=utf-8 and stream=watch matches nothing: it asks for another representation.
//
// Where nothing matches, the error has code Unsupported and status 406, and lists what there is. An Accept that can't be read is
// an error of code Invalid, as [ParseAccept] says.
func (r *Registry) Negotiate(accept []string, messages bool) (Framer, error) {
	ranges, err := ParseAccept(accept)
	if err != nil {
		return nil, err
	}
	if len(ranges) == 0 {
		ranges = []MediaRange{{Type: "*", Subtype: "*", Q: 1000}}
	}
	var best Framer
	var bestOffer offer
	var available []string
	for _, f := range r.framers {
		if _, ok := f.(MessageFramer); messages && !ok {
			continue
		}
		available = append(available, f.MediaType())
		if o := offerOf(f.MediaType(), ranges); o.q > 0 && (best == nil || o.better(bestOffer)) {
			best, bestOffer = f, o
		}
	}
	if best == nil {
		return nil, notAcceptable(accept, available)
	}
	return best, nil
}

// An offer is what an Accept header makes of a media type.
type offer struct {
	q        int
	specific int
	place    int // of the range in the header
}

func (o offer) better(than offer) bool {
	if o.q != than.q {
		return o.q > than.q
	}
	if a, b := o.breadth(), than.breadth(); a != b {
		return a > b
	}
	return o.place < than.place
}

// breadth is what of specific counts between two media types: a name, by whatever name and parameters, a type, or anything.
func (o offer) breadth() int { return min(o.specific&^1, alias) }

// offerOf finds the range that decides about a media type: the most specific one, and of those the one with the greatest weight.
func offerOf(mediaType string, ranges []MediaRange) offer {
	var best offer
	for place, m := range ranges {
		specific := m.matches(mediaType)
		if specific == 0 && mediaType == (CBORSeq{}).MediaType() && m.matches("application/cbor") >= exact {
			specific = alias
		}
		if specific > best.specific || specific > 0 && specific == best.specific && m.Q > best.q {
			best = offer{m.Q, specific, place}
		}
	}
	return best
}
