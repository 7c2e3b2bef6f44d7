// Package longpoll is a transport by long polling, for clients behind proxies that buffer
// responses until they end.
//
// A poll is a watch with the header "Listwatch-Poll: 1". Its response ends when it contains an
// event, or after [Server].Wait, but never before all initial events have been sent. The client
// then resumes with the next poll, as after the clean end of any watch. The server keeps no state
// between polls, so another server can answer the next one.
//
// A [client.Remote] needs a negative Backoff.Min, so that it polls again at once.
//
// [client.Remote]: https://pkg.go.dev/github.com/listwatch/listwatch/client#Remote
package longpoll

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// pollHeader is the request header that selects this transport.
const pollHeader = "Listwatch-Poll"

// DefaultWait is the default of [Server].Wait.
const DefaultWait = 20 * time.Second

// A Server is the server half of the transport. The zero value is ready to use.
type Server struct {
	// Wait is the time after which a poll without an event ends. If zero, DefaultWait is used. If
	// sending the initial events takes longer, the poll ends after them.
	Wait time.Duration
}

var _ transport.Server = (*Server)(nil)

// envelope is a variable because its pointer identifies the wire form.
var envelope = &transport.Envelope{}

// Name implements [transport.Server].
func (s *Server) Name() string { return "longpoll" }

// Claims implements [transport.Server].
func (s *Server) Claims(r *http.Request) bool { return r.Header.Get(pollHeader) != "" }

// Accept implements [transport.Server].
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	encoder, err := transport.Negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	stream, err := transport.OpenResponse(w, r, o, encoder)
	if err != nil {
		return nil, err
	}
	finish := make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	// The timer and Progress may run at the same time. Each stores its own flag before it loads the
	// other one, so that at least one of them sees both flags and ends the poll.
	var synced, expired atomic.Bool
	timer := time.AfterFunc(cmp.Or(s.Wait, DefaultWait), func() {
		expired.Store(true)
		if synced.Load() {
			end()
		}
	})
	context.AfterFunc(r.Context(), func() { timer.Stop() })
	sent := 0
	stream.Finish = finish
	stream.Progress = func(events int, at listwatch.Version) {
		sent += events
		if at > 0 {
			synced.Store(true)
			if sent > 0 || expired.Load() {
				end()
			}
		}
	}
	return stream, nil
}
