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

	// The next fields describe the current block.
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

var (
	errFieldName  = errors.New("a field name is invalid")
	errFieldValue = errors.New("a field value is invalid")
	errConnField  = errors.New("a field is specific to HTTP/1.1 connections")
	errLength     = errors.New("content-length is invalid")
)

func (b *headerBlock) init(c *conn) {
	b.limit = c.settings.headerBytes
	// Until the client acknowledges the SETTINGS it may use the default table.
	b.decoder = hpack.NewDecoder(defaultTable, b.emit)
	b.decoder.SetMaxStringLength(2 * b.limit) // add applies the same limit to the whole block
}

func (b *headerBlock) start(f *http2.HeadersFrame) error {
	*b = headerBlock{decoder: b.decoder, limit: b.limit, stream: f.StreamID, end: f.StreamEnded()}
	b.selfDependent = f.HasPriority() && f.Priority.StreamDep == f.StreamID
	return b.add(f.HeaderBlockFragment(), f.HeadersEnded())
}

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

// chargeBlock charges for the header block that is being read.
func (c *conn) chargeBlock() error {
	b := &c.headers
	cost := 0
	if b.continuations > freeContinuations {
		b.continuations--
		cost = costFrame
	}
	if units := (b.size - 2*b.encoded - freeBytes) / bytesPerUnit; units > b.charged {
		cost += units - b.charged
		b.charged = units
	}
	return c.budget.charge(cost)
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
// although section 8.2.1 forbids them, because net/http's client sends them as they are. So does
// its server, whose decoder this is: like ours, it refuses a second change of the table size in one
// block, which RFC 7541, section 4.2, permits, but no client is known to send.
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

// receiveBlock handles a complete header block: the head of a request, or its trailers.
func (c *conn) receiveBlock() error {
	b := &c.headers
	defer b.release()
	if b.stream%2 == 0 {
		return connError{http2.ErrCodeProtocol, "a client must open streams with odd numbers"}
	}
	if b.selfDependent {
		return connError{http2.ErrCodeProtocol, "a stream depends on itself"}
	}
	if st := c.streams.find(b.stream); st != nil {
		return c.receiveTrailers(st)
	}
	if b.stream <= c.lastID {
		return c.receiveLateTrailers()
	}
	c.budget.explain(framesPerStream)
	if c.goAwayState == goAwayRefused {
		if (b.stream-c.lastID)/2 <= c.settings.streams { // the stream may have been under way
			return nil
		}
		return c.budget.charge(costFrame)
	}
	c.lastID = b.stream
	if b.invalid != nil {
		return c.rejectStream(http2.ErrCodeProtocol)
	}
	if len(c.streams) >= int(c.settings.streams) {
		return c.rejectStream(http2.ErrCodeRefusedStream)
	}
	r, err := c.newRequest(b)
	if err != nil {
		return c.rejectStream(http2.ErrCodeProtocol)
	}
	c.openExchange(c.addStream(b.stream), r, b)
	return nil
}

// rejectStream resets the stream that the current header block would open.
func (c *conn) rejectStream(code http2.ErrCode) error {
	b := &c.headers
	if !b.end {
		c.cut.add(cutStream{b.stream, firstWindow}, int(c.settings.streams))
	}
	return c.streamError(b.stream, code)
}

// receiveLateTrailers handles a header block for a stream that is closed.
func (c *conn) receiveLateTrailers() error {
	b := &c.headers
	if c.cut.find(b.stream) == nil {
		return connError{http2.ErrCodeStreamClosed, "HEADERS for a stream that is closed"}
	}
	if !b.end {
		return c.budget.charge(costFrame)
	}
	c.cut.end(b.stream)
	return nil
}

func (c *conn) receiveTrailers(st *stream) error {
	b := &c.headers
	switch {
	case st.remoteClosed:
		return c.streamError(st.id, http2.ErrCodeStreamClosed)
	case !b.end, b.tooLarge, b.invalid != nil, b.pseudo.seen != 0, st.ex != nil && st.ex.upgrade:
		// After CONNECT there are no trailers either (RFC 9113, section 8.5).
		return c.streamError(st.id, http2.ErrCodeProtocol)
	}
	if st.ex != nil {
		for _, f := range b.fields {
			st.ex.body.trailer.Add(f.Name, f.Value)
		}
	}
	return c.receiveEnd(st)
}

// newRequest returns the request of a header block, without its body and context.
func (c *conn) newRequest(b *headerBlock) (*http.Request, error) {
	p := &b.pseudo
	r := &http.Request{
		Method: p.method, Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header, len(b.fields)),
		Host: p.authority, RequestURI: p.path, RemoteAddr: c.remote, TLS: c.tls,
	}
	if b.tooLarge {
		return r, nil // the handler responds without a look at the request
	}
	if err := p.setTarget(r, c.settings.extendedConnect); err != nil {
		return nil, err
	}
	if err := setFields(r, b.fields); err != nil || p.protocol == "" {
		return r, err
	}
	if r.ContentLength >= 0 {
		return nil, errLength // a tunnel has no content (RFC 9110, section 9.3.6)
	}
	r.Header[protocolField] = []string{p.protocol}
	return r, nil
}

// setFields sets the header of r, and the fields of r that net/http derives from the header.
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
	r.ContentLength = -1
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
