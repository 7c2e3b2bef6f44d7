package transport

import (
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// A Request describes a stream to open.
type Request struct {
	// URL is an http or https URL with its query. A transport with another scheme converts it.
	URL *url.URL
	// Method is MethodQuery to send the query in the body of a QUERY request. Otherwise it is empty
	// or GET. WebSocket ignores it.
	Method string
	// Header is added to the request, for credentials and Last-Event-ID. The transport sets
	// Accept from Framings.
	Header http.Header
	// Framings are the framings that the client accepts, the preferred one first. If nil, only
	// JSON is accepted.
	Framings []framing.Framer
	// Codings are the content codings that the client accepts, the preferred one first, as
	// [Codings] returns them. If empty, none is accepted. Over WebSocket any coding enables
	// permessage-deflate. The server may still send the stream uncompressed.
	Codings []string
	// Limit is the maximum number of bytes of one event, after decompression. Zero or a negative
	// value means framing.DefaultLimit.
	Limit int
	// Activity is called whenever data has arrived from the server, including heartbeats. It must
	// return quickly. It may be nil.
	Activity func()
}

// MethodQuery is the method QUERY of RFC 10008. It is a GET whose parameters are in the body, so
// limits for URLs do not apply to them. QueryType is the type of that body.
const (
	MethodQuery = "QUERY"
	QueryType   = "application/x-www-form-urlencoded"
)

// framings returns Framings, or its default.
func (r *Request) framings() []framing.Framer {
	if r.Framings == nil {
		return []framing.Framer{framing.JSON{}}
	}
	return r.Framings
}

// AcceptHeader returns the value of the Accept header for r.Framings.
func (r *Request) AcceptHeader() string {
	var types []string
	for _, f := range r.framings() {
		types = append(types, f.MediaType())
	}
	return httpheader.Preferences(types)
}

// FramerFor returns the framer of r.Framings for the Content-Type of a response. For any
// other Content-Type, such as text/html of a proxy's error page, it returns an error of
// code Unsupported.
func (r *Request) FramerFor(contentType string) (framing.Framer, error) {
	known, err := framing.NewRegistry(r.framings()...)
	if err != nil {
		return nil, err
	}
	if f, ok := known.Lookup(contentType); ok {
		return f, nil
	}
	got := "no Content-Type"
	if contentType != "" {
		got = "Content-Type " + excerpt(contentType)
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK,
		Message: "the response has " + got + ", must be one of " + r.AcceptHeader(),
	}
}
