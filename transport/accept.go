package transport

import (
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Negotiate chooses the framing of a stream by o.Accept, and the content coding by the
// Accept-Encoding headers of r. There is no content coding if envelope is for messages. Negotiate
// sets Content-Type, Content-Encoding and Vary in w. It also sets the headers that keep proxies
// from caching, modifying and buffering the stream, except for those headers that the caller has
// already set. An error is a *listwatch.Error. After an error only Vary has been set.
func Negotiate(w http.ResponseWriter, r *http.Request, o Options, envelope *Envelope) (Encoder, error) {
	offer := o.Framings
	if offer == nil {
		offer = framing.Default()
	}
	h := w.Header()
	if !slices.Contains(h.Values("Vary"), "Accept") {
		h.Add("Vary", "Accept")
	}
	accept := o.Accept
	if accept == nil {
		var err error
		if accept, err = framing.ParseAccept(r.Header.Values("Accept")); err != nil {
			return Encoder{}, listwatch.AsError(err)
		}
	}
	f, err := offer.Negotiate(accept, envelope.Messages)
	if err != nil {
		return Encoder{}, listwatch.AsError(err)
	}
	encoder, err := EncoderFor(f, envelope)
	if err != nil {
		return Encoder{}, listwatch.AsError(err)
	}
	if !envelope.Messages {
		if encoder.coding, err = negotiateCoding(h, r); err != nil {
			return Encoder{}, err
		}
		if encoder.coding != nil {
			h.Set("Content-Encoding", encoder.coding.name)
		}
		if o.InitialBlocks && encoder.coding == contentCodings[0] {
			encoder.coding = initialBlocks
		}
	}
	h.Set("Content-Type", framing.ContentTypeOf(f))
	ForwardAtOnce(h)
	return encoder, nil
}

// ForwardAtOnce sets the headers of a response that proxies must forward part by part: proxies must
// not cache, change or buffer it. Incremental is the field of RFC 10036, and X-Accel-Buffering is
// nginx's. ForwardAtOnce keeps the headers that the caller has already set.
func ForwardAtOnce(h http.Header) {
	setDefault(h, "Cache-Control", "no-cache, private, no-transform")
	setDefault(h, "Incremental", "?1")
	setDefault(h, "X-Accel-Buffering", "no")
}

func setDefault(h http.Header, name, value string) {
	if _, ok := h[name]; !ok {
		h.Set(name, value)
	}
}

// canFlush reports whether w, or a writer that it wraps, is an http.Flusher.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}
