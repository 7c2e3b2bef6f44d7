package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/certs"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A HandlerSequence answers the first request with its first step, the next with the second; when it is over, the last step answers all.
type HandlerSequence struct {
	*Env
	Handlers []http.HandlerFunc

	mu           sync.Mutex
	requestTimes []time.Time // guarded by mu; of all requests so far
}

// Serve starts an http.Server of ours with h.
func (e *Env) Serve(h http.Handler) *Route {
	e.Helper()
	e.Use(InProcess)
	return e.ServeOnAnyTarget(h)
}

// ServeOnAnyTarget is open in a case that can do without.
func (e *Env) ServeOnAnyTarget(h http.Handler) *Route {
	e.Helper()
	s := e.Setup
	s.ServerTransport = e.Variant.Server
	return e.RouteTo(StartServer(e.T, s, h, certs.ServeTrusted))
}

// ServeInTurn opens a site that does steps.
func (e *Env) ServeInTurn(steps ...http.HandlerFunc) (*HandlerSequence, *Route) {
	s := &HandlerSequence{Env: e, Handlers: steps}
	return s, e.Serve(s)
}

// ServeHTTP does the next step.
func (s *HandlerSequence) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requestTimes = append(s.requestTimes, time.Now())
	step := s.Handlers[min(len(s.requestTimes), len(s.Handlers))-1]
	s.mu.Unlock()
	step(w, r)
}

// RequestTimes returns when the requests came.
func (s *HandlerSequence) RequestTimes() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requestTimes)
}

// Accept is a step: a watch, with which f goes on. It ends when f returns.
func (w Variant) Accept(o transport.Options, f func(*transport.Stream)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		stream, err := w.Server.Accept(rw, r, o)
		if err != nil {
			watchserver.WriteError(rw, r, err)
			return
		}
		f(stream)
	}
}

// sendEvents sends events to a client, which may have left.
func sendEvents(s *transport.Stream, events ...listwatch.Event) {
	for _, e := range events {
		if frame, err := s.Encoder.Event(e); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
	}
}

// SendThenEnd is a step: a watch that has these events and then a clean end.
func (w Variant) SendThenEnd(events ...listwatch.Event) http.HandlerFunc {
	return w.Accept(transport.Options{}, func(s *transport.Stream) {
		sendEvents(s, events...)
		_ = s.Sender.Close(transport.Finished)
	})
}

// SendError is a step: a watch that ends with an ERROR event.
func (w Variant) SendError(cause error) http.HandlerFunc {
	return w.Accept(transport.Options{}, func(s *transport.Stream) {
		if frame, err := s.Encoder.Error(cause); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
		_ = s.Sender.Close(transport.Finished)
	})
}

// SendThenHold is a step: a watch that has these events, and is cut off when the channel is closed.
func (w Variant) SendThenHold(until <-chan struct{}, events ...listwatch.Event) http.HandlerFunc {
	return w.Accept(transport.Options{}, func(s *transport.Stream) {
		sendEvents(s, events...)
		select {
		case <-until:
		case <-s.Done:
		}
		if s.Sender.Close(transport.Abort) != nil || !s.Detached {
			panic(http.ErrAbortHandler)
		}
	})
}

// SendThenFallSilent is a step: a watch that has these events, and then not even a ping.
func (w Variant) SendThenFallSilent(events ...listwatch.Event) http.HandlerFunc {
	return w.Accept(transport.Options{PingInterval: -1}, func(s *transport.Stream) {
		sendEvents(s, events...)
		<-s.Done
		_ = s.Sender.Close(transport.Abort)
	})
}

// RecordVersion is a step: it tells the resourceVersion that it is asked for, and does not answer.
func RecordVersion(asked chan<- string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Query().Get("resourceVersion"):
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}
}

// Respond is a step: an answer that is no stream. header are pairs.
func Respond(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// StatusJSON is the JSON of a Status.
func StatusJSON(code int, reason string, details *listwatch.StatusDetails) string {
	s := listwatch.Status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: "on purpose", Reason: reason, Code: code, Details: details}
	body, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// AddedEvent is an ADDED event of a thing; rv is what it bears as its version.
func AddedEvent(name, rv string) listwatch.Event {
	v, err := listwatch.ParseVersion(rv)
	if err != nil {
		v = 1
	}
	data := fmt.Sprintf(`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"name":%q,"resourceVersion":%q}}`, name, rv)
	return listwatch.Event{Type: listwatch.Added, Version: v, Object: &listwatch.Object{Key: KeyOf(name), Version: v, Data: []byte(data)}}
}

// InitialEventsEnd is the bookmark that ends initial events.
func InitialEventsEnd(v listwatch.Version) listwatch.Event {
	return listwatch.NewBookmark(listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}, v, true)
}

// ServeWatches opens a site with a server of the case's own. What is left open is cut off.
func (e *Env) ServeWatches(server *watchserver.Server) *Route {
	s := e.Serve(server)
	s.Internals, s.Drain = &Internals{Source: server.Source, Handler: server}, server.Drain
	e.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Drain(ctx)
	})
	return s
}
