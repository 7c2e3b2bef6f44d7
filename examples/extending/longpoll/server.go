// Package longpoll is a transport by long polling, for clients behind proxies that buffer
// responses.
//
// A client opens a stream by a GET with the header "Listwatch-Poll: open". The response has the
// headers of the stream, no body, and a token in Listwatch-Poll. The client then polls: a POST
// with the token returns the data that is pending, or waits for it, and has the next token. The
// last response has the token "end". A DELETE with the token ends the stream early.
//
// A token is valid for one poll. If a response is lost, the stream breaks and the client opens
// another one from the last version that it has seen, so no event is lost. All requests of a
// stream must reach the same process.
package longpoll

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

const (
	tokenHeader = "Listwatch-Poll"
	tokenOpen   = "open" // opens a stream
	tokenEnd    = "end"  // marks the last response

	pollTime = 20 * time.Second // a poll without data returns after this time
	idleTime = 40 * time.Second // a stream ends if it is not polled for this time
)

// A Server is the server half. [Server.Handler] must wrap the handler that uses it. The zero
// value is ready to use.
type Server struct {
	streams sync.Map // token → *stream
}

var _ transport.Server = (*Server)(nil)

// envelope is a variable because its pointer identifies the wire form.
var envelope = &transport.Envelope{}

// Name implements [transport.Server].
func (s *Server) Name() string { return "longpoll" }

// Claims implements [transport.Server].
func (s *Server) Claims(r *http.Request) bool { return r.Header.Get(tokenHeader) == tokenOpen }

// Accept implements [transport.Server].
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	encoder, err := transport.Negotiate(w, transport.WithoutCompression(r), o, envelope)
	if err != nil {
		return nil, err
	}
	x := newStream(o.WriteTimeoutOrDefault())
	w.Header().Set(tokenHeader, s.newToken(x))
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		x.Close(transport.Abort) // the headers may be out, so this is a broken stream
	}
	// The stream is detached, because it continues after this request.
	return &transport.Stream{Sender: x, Encoder: encoder, Done: x.done, Detached: true}, nil
}

// newToken returns the token of the next poll of x. If it is not used in time, x ends.
func (s *Server) newToken(x *stream) string {
	token := rand.Text()
	x.idle = time.AfterFunc(idleTime, func() {
		if _, unused := s.streams.LoadAndDelete(token); unused {
			x.Close(transport.Abort)
		}
	})
	s.streams.Store(token, x)
	return token
}

// Handler returns a handler that serves the polls, and passes all other requests to the
// handler next.
func (s *Server) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get(tokenHeader)
		if token == "" || token == tokenOpen {
			next.ServeHTTP(w, r)
			return
		}
		v, ok := s.streams.LoadAndDelete(token)
		if !ok {
			http.Error(w, "the stream has ended, or the token was used before: open another stream", http.StatusServiceUnavailable)
			return
		}
		x := v.(*stream)
		x.idle.Stop()
		if r.Method == http.MethodDelete {
			x.Close(transport.Abort)
			return
		}
		s.poll(w, r, x)
	})
}

// poll responds with pending data of x.
func (s *Server) poll(w http.ResponseWriter, r *http.Request, x *stream) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the timeouts of the http.Server are for short requests
	_ = rc.SetWriteDeadline(time.Time{})
	data, end := x.next(r.Context())
	switch {
	case r.Context().Err() != nil:
		x.Close(transport.Abort) // the client has disconnected, and data is lost
		return
	case end == aborted:
		http.Error(w, "the stream was aborted: open another stream", http.StatusServiceUnavailable)
		return
	case end == finished:
		w.Header().Set(tokenHeader, tokenEnd)
	default:
		w.Header().Set(tokenHeader, s.newToken(x))
	}
	if x.timeout > 0 {
		_ = rc.SetWriteDeadline(time.Now().Add(x.timeout))
	}
	if _, err := w.Write(data); err != nil {
		x.Close(transport.Abort)
	}
}
