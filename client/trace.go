package client

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A Trace is told what watchers do that their readers don't see. Each hook may be nil; it is called from the goroutine at work, by
// many watchers at once, and must be quick.
type Trace struct {
	// Opened says that a stream is open on the named transport. from is the version after which it goes on; zero: it begins
	// with the state.
	Opened func(transport string, from listwatch.Version)
	// Refused says that the named transport could not be used and the next one is tried.
	TransportFailed func(transport string, err error)
	// Lost says that a stream has ended, or could not be opened, and that another will be tried after wait. err is io.EOF
	// where the server ended it cleanly.
	Lost func(err error, wait time.Duration)
}

func (t *Trace) opened(transport string, from listwatch.Version) {
	if t != nil && t.Opened != nil {
		t.Opened(transport, from)
	}
}

func (t *Trace) refused(transport string, err error) {
	if t != nil && t.TransportFailed != nil {
		t.TransportFailed(transport, err)
	}
}

func (t *Trace) lost(err error, wait time.Duration) {
	if t != nil && t.Lost != nil {
		t.Lost(err, wait)
	}
}
