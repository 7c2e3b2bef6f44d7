package loop

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A headerBlock assembles the fields of HEADERS and the CONTINUATION frames that follow it. It
// belongs to the reader. The Framer could assemble the fields too, but would read any number of
// CONTINUATION frames before the connection could charge for them.
type headerBlock struct {
	decoder *hpack.Decoder
	limit   int // the maximum size of all fields together, measured as in RFC 9113, section 6.5.2

	stream        uint32
	end           bool // END_STREAM
	selfDependent bool
	pseudo        pseudoHeaders
	fields        []hpack.HeaderField // without the pseudo-headers
	size, encoded int
	charged       int // the units of the budget that were charged for size
	continuations int
	tooLarge      bool
	invalid       error // the first violation of RFC 9113, section 8.2
}

func (b *headerBlock) init(limit int) {
	b.limit = limit
	// Until the client acknowledges the SETTINGS it may use the default table.
	b.decoder = hpack.NewDecoder(defaultTable, b.emit)
	b.decoder.SetMaxStringLength(2 * b.limit) // add applies the same limit to the whole block
}

func (b *headerBlock) start(f *http2.HeadersFrame) error {
	*b = headerBlock{decoder: b.decoder, limit: b.limit, stream: f.StreamID, end: f.StreamEnded()}
	b.selfDependent = f.HasPriority() && f.Priority.StreamDep == f.StreamID
	return b.add(f.HeaderBlockFragment(), f.HeadersEnded())
}

var (
	errFieldName  = errors.New("a field name is invalid")
	errFieldValue = errors.New("a field value is invalid")
	errConnField  = errors.New("a field is specific to HTTP/1.1 connections")
	errLength     = errors.New("content-length is invalid")
)

func (b *headerBlock) add(fragment []byte, last bool) error {
	b.encoded += len(fragment)
	if b.encoded > 2*b.limit {
		return connError{http2.ErrCodeEnhanceYourCalm, "a header block is too large"}
	}
	_, err := b.decoder.Write(fragment)
	if err == nil && last {
		err = b.decoder.Close()
	}
	if err != nil {
		return connError{http2.ErrCodeCompression, err.Error()}
	}
	return nil
}

// cost returns the units of the budget to charge for the block, without the units that were already
// charged.
func (b *headerBlock) cost() int {
	cost := 0
	if b.continuations > freeContinuations {
		b.continuations--
		cost = costFrame
	}
	if units := (b.size - 2*b.encoded - freeBytes) / bytesPerUnit; units > b.charged {
		cost += units - b.charged
		b.charged = units
	}
	return cost
}

// emit receives the decoded fields. Beyond the limit it only counts their size.
func (b *headerBlock) emit(f hpack.HeaderField) {
	b.size += int(f.Size())
	if b.size > b.limit {
		b.tooLarge, b.fields = true, nil
	}
	if b.tooLarge || b.invalid != nil {
		return
	}
	if b.invalid = b.check(f); b.invalid == nil && !f.IsPseudo() {
		b.fields = append(b.fields, f)
	}
}

// check returns an error if f violates RFC 9113, section 8.2. Spaces around a value are accepted,
// although section 8.2.1 forbids them, because net/http's client sends them and its server accepts
// them. The decoder, which net/http's server uses too, refuses a second change of the table size in
// one block. RFC 7541, section 4.2, permits that change, but no client is known to send it.
func (b *headerBlock) check(f hpack.HeaderField) error {
	if !httpguts.ValidHeaderFieldValue(f.Value) {
		return errFieldValue
	}
	if f.IsPseudo() {
		if len(b.fields) > 0 {
			return errPseudoOrder
		}
		return b.pseudo.set(f)
	}
	if !httpguts.ValidHeaderFieldName(f.Name) || strings.ToLower(f.Name) != f.Name {
		return errFieldName
	}
	switch f.Name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return errConnField
	case "te":
		if f.Value != "trailers" {
			return errConnField
		}
	}
	return nil
}

// release drops the fields of a block that has been handled.
func (b *headerBlock) release() { b.fields, b.pseudo = nil, pseudoHeaders{} }

// request returns the request of the block, without its body, its context and the attributes of its
// connection.
func (b *headerBlock) request(extendedConnect bool) (*http.Request, error) {
	p := &b.pseudo
	r := &http.Request{
		Method: p.method, Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header, len(b.fields)),
		Host: p.authority, RequestURI: p.path, ContentLength: -1,
	}
	if b.tooLarge {
		return r, nil // the handler responds with 431, whatever the length of the body
	}
	if err := p.setTarget(r, extendedConnect); err != nil {
		return nil, err
	}
	if err := setFields(r, b.fields); err != nil {
		return nil, err
	}
	if r.ContentLength > 0 && b.end {
		return nil, errLength
	}
	if p.protocol != "" {
		if r.ContentLength >= 0 {
			return nil, errLength // a tunnel has no content (RFC 9110, section 9.3.6)
		}
		r.Header[protocolField] = []string{p.protocol}
	}
	return r, nil
}

// setFields sets the header of r, and the fields of r that net/http derives from the header. It
// leaves ContentLength as it is if the header has no length.
func setFields(r *http.Request, fields []hpack.HeaderField) error {
	for _, f := range fields {
		name := http.CanonicalHeaderKey(f.Name)
		r.Header[name] = append(r.Header[name], f.Value)
	}
	// A client may split the cookies: RFC 9113, section 8.2.3.
	if crumbs := r.Header["Cookie"]; len(crumbs) > 1 {
		r.Header["Cookie"] = []string{strings.Join(crumbs, "; ")}
	}
	if hosts, ok := r.Header["Host"]; ok {
		if r.Host == "" {
			r.Host = hosts[0]
		}
		if len(hosts) > 1 || hosts[0] != r.Host || !validHost(r.Host) {
			return errTarget
		}
		delete(r.Header, "Host")
	}
	if lengths, ok := r.Header["Content-Length"]; ok {
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil || len(lengths) > 1 {
			return errLength
		}
		r.ContentLength = int64(n)
	}
	for i, name := range declaredTrailers(r.Header, maxTrailers) {
		if i == 0 {
			r.Trailer = http.Header{}
		}
		r.Trailer[name] = nil
	}
	delete(r.Header, "Trailer")
	return nil
}

// maxTrailers is the maximum number of trailers that a request may announce. More are ignored.
const maxTrailers = 100

// declaredTrailers returns the names in the header Trailer. It considers limit names at most.
func declaredTrailers(h http.Header, limit int) (names []string) {
	for _, list := range h["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if limit--; limit < 0 {
				return names
			}
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if httpguts.ValidTrailerHeader(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
