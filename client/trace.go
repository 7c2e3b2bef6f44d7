package client

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace has hooks that report when watches connect, disconnect or fail to connect, and the
// headers of responses. The readers do not see these events. Each hook may be nil. Hooks are called
// from many goroutines at once and must return quickly.
type Trace struct {
	// Opened is called when the server has accepted a watch over the named transport: "chunked",
	// "h2", "websocket", or "http" for either version of HTTP over Remote.HTTPClient. from is
	// the version from which the watch resumes. Zero means that it begins with the current
	// state.
	Opened func(transport string, from listwatch.Version)
	// TransportFailed is called when the named transport could not be used. The next transport
	// is then tried.
	TransportFailed func(transport string, err error)
	// Lost is called when a connection has ended or a request has failed. The next attempt
	// starts after wait. err is io.EOF if the server ended the watch cleanly.
	Lost func(err error, wait time.Duration)
	// Responded is called with the headers of each response to a list or a watch that is not an
	// error. A server of Kubernetes' API sends Warning with them if a resource is deprecated. The
	// function must not change the headers.
	Responded func(h http.Header)
}

func (t *Trace) opened(transport string, from listwatch.Version) {
	if t != nil && t.Opened != nil {
		t.Opened(transport, from)
	}
}

func (t *Trace) transportFailed(transport string, err error) {
	if t != nil && t.TransportFailed != nil {
		t.TransportFailed(transport, err)
	}
}

func (t *Trace) responded(h http.Header) {
	if t != nil && t.Responded != nil {
		t.Responded(h)
	}
}

func (t *Trace) lost(err error, wait time.Duration) {
	if t != nil && t.Lost != nil {
		t.Lost(err, wait)
	}
}
