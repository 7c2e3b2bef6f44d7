package watchserver

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace is told what a Server does. Nil hooks are not called; the others are called from the goroutine that does it, so they must be
// quick and must not block.
type Trace struct {
	// Refused: a request was answered with an error.
	Refused func(r *http.Request, err error)
	// Opened: a watch was accepted and its headers are on their way.
	Opened func(w Watch)
	// Sent: a batch was written.
	Sent func(w Watch, events, bytes int, took time.Duration)
	// Closed: a watch has ended; err is nil where it ended because its time was up.
	Closed func(w Watch, err error)
}

// A Watch describes an open watch, for hooks and for people.
type Watch struct {
	ID        uint64 `json:"id"`
	Client    string `json:"client"`
	Transport string `json:"transport"`
	MediaType string `json:"mediaType"`
	URL       string `json:"url"`
	// Compression is what the stream is compressed with, as "gzip", "zstd" or "permessage-deflate"; empty: nothing.
	Compression string    `json:"compression,omitempty"`
	Opened      time.Time `json:"opened"`
	// Events and Bytes are how many were sent, compressed; Version is that of the newest, or the last bookmark's.
	Events  int64             `json:"events"`
	Bytes   int64             `json:"bytes"`
	Version listwatch.Version `json:"resourceVersion,string"`
	// Writing is how long the write has lasted that is under way: a client that doesn't read shows here; zero: there is none.
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
