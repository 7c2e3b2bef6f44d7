package wswatch

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Request is the request of a client for a watch over WebSocket.
type Request struct {
	*transport.Request
	// Subprotocols are the subprotocols to offer.
	Subprotocols []string
	// Limit is the maximum number of bytes of a message, after decompression.
	Limit int64
}

// newRequest checks r, removes the framings that have no message form, and applies the defaults.
func newRequest(r *transport.Request) (*Request, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "URL scheme " + strconv.Quote(r.URL.Scheme) + ": must be http or https",
		}
	}
	request := *r
	if request.Framings == nil {
		request.Framings = []framing.Framer{framing.JSON{}}
	}
	request.Framings = slices.DeleteFunc(slices.Clone(request.Framings), func(f framing.Framer) bool {
		_, ok := f.(framing.MessageFramer)
		return !ok
	})
	if len(request.Framings) == 0 {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Message: "no framing of the request has a message form",
		}
	}
	offered := OfferedSubprotocols(r.Header)
	if name := framing.SubprotocolOf(request.Framings[0]); name != "" && !slices.Contains(offered, name) {
		offered = append([]string{name}, offered...)
	}
	return &Request{&request, offered, int64(framing.LimitOrDefault(r.Limit))}, nil
}

// Header returns the headers of the handshake, except for the headers that a library sets.
func (r *Request) Header() http.Header {
	h := WithoutHandshake(r.Request.Header)
	h.Set("Accept", r.AcceptHeader())
	return h
}

// checkSubprotocol returns an error if h, the headers of the response, selects a subprotocol that
// was not offered.
func (r *Request) checkSubprotocol(h http.Header) error {
	chosen := h.Values("Sec-Websocket-Protocol")
	if len(chosen) > 1 || len(chosen) == 1 && !slices.Contains(r.Subprotocols, chosen[0]) {
		got := strconv.Quote(strings.Join(chosen, ", "))
		return ErrBadResponse("the server selected a subprotocol that was not offered: " + got)
	}
	return nil
}

// ErrBadResponse returns the error for a handshake whose response is invalid.
func ErrBadResponse(message string) error {
	return &listwatch.Error{Code: listwatch.Unsupported, Message: message}
}

// decode decodes a message. agreed is the framing that the response names, or nil. An error is a
// [*Violation], or an error of the framing.
func (r *Request) decode(agreed framing.MessageFramer, isBinary bool, message []byte) (framing.WatchEvent, error) {
	switch {
	case int64(len(message)) > r.Limit:
		return framing.WatchEvent{}, ErrTooBig(r.Limit)
	case !isBinary && !utf8.Valid(message):
		// rfc6455#section-8.1 requires UTF-8.
		return framing.WatchEvent{}, &Violation{CloseBadText, "text that is not UTF-8"}
	}
	f, err := r.framingOf(agreed, isBinary)
	if err != nil {
		return framing.WatchEvent{}, err
	}
	return f.DecodeMessage(message)
}

// framingOf returns the framing of a message. It is the framing agreed in the handshake, if there
// is one, or else the framing of the message's type. But a text message never has a binary framing,
// even if the handshake agreed on one: kube-apiserver accepts any subprotocol and sends JSON.
func (r *Request) framingOf(agreed framing.MessageFramer, isBinary bool) (framing.MessageFramer, error) {
	if agreed != nil && (isBinary || !agreed.Binary()) {
		return agreed, nil
	}
	for _, f := range r.Framings {
		if m := f.(framing.MessageFramer); m.Binary() == isBinary {
			return m, nil
		}
	}
	kind := "text"
	if isBinary {
		kind = "binary"
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Op: "receive",
		Message: "the server sends " + kind + " messages, which were not requested",
	}
}

// agreedFraming returns the framing that h, the headers of the response, names. It returns nil if h
// names none.
func (r *Request) agreedFraming(h http.Header) framing.MessageFramer {
	if name := h.Get("Sec-Websocket-Protocol"); name != "" {
		for _, f := range r.Framings {
			if framing.SubprotocolOf(f) == name {
				return f.(framing.MessageFramer)
			}
		}
	}
	f, err := r.FramerFor(h.Get("Content-Type"))
	if err != nil {
		return nil
	}
	return f.(framing.MessageFramer)
}

// MaxScratch is the maximum size of a buffer that a client keeps between two messages.
const MaxScratch = 64 << 10
