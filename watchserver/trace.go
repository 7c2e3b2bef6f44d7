package watchserver

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace has hooks for logging and metrics, which a [Server] calls. Each hook may be nil.
// Hooks are called on the goroutine that serves the request or watch, possibly
// concurrently, so they must not block.
type Trace struct {
	// Refused is called after an error response to a request.
	Refused func(r *http.Request, err error)
	// Opened is called when a watch has been accepted, before its first event is written.
	Opened func(w Watch)
	// Sent is called after each write, with the number of events and bytes, and the duration of
	// the write.
	Sent func(w Watch, events, bytes int, took time.Duration)
	// Closed is called when a watch has ended. err is nil if its time was up, and otherwise
	// the reason for its end.
	Closed func(w Watch, err error)
}

// A Watch describes an open watch, for hooks and for operators.
type Watch struct {
	// ID is unique within the Server.
	ID uint64 `json:"id"`
	// Client is the name that Server.ClientOf returned.
	Client string `json:"client"`
	// Transport is the name of the transport, such as "h2".
	Transport string `json:"transport"`
	// MediaType is the media type of the framing, such as "application/json".
	MediaType string `json:"mediaType"`
	// URL is the request's path and query.
	URL string `json:"url"`
	// Compression is the compression of the stream: "gzip", "zstd" or "permessage-deflate". It
	// is empty if the stream is not compressed.
	Compression string    `json:"compression,omitempty"`
	Opened      time.Time `json:"opened"`
	// Events is the number of events written.
	Events int64 `json:"events"`
	// Bytes is the number of bytes written, after compression.
	Bytes int64 `json:"bytes"`
	// Version is the version of the last event or bookmark written.
	Version listwatch.Version `json:"resourceVersion,string"`
	// Writing is the duration of the current write so far, which is long if the client does
	// not read. It is zero if no write is in progress.
	Writing time.Duration `json:"writing"`
}

func (t *Trace) refused(r *http.Request, err error) {
	if t != nil && t.Refused != nil {
		t.Refused(r, err)
	}
}

func (t *Trace) opened(s *stream) {
	if t != nil && t.Opened != nil {
		t.Opened(s.describe())
	}
}

func (t *Trace) sent(s *stream, events, bytes int, start time.Time) {
	if t != nil && t.Sent != nil {
		t.Sent(s.describe(), events, bytes, time.Since(start))
	}
}

func (t *Trace) closed(s *stream, err error) {
	if t != nil && t.Closed != nil {
		t.Closed(s.describe(), err)
	}
}
