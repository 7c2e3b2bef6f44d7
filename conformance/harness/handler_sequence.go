package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A HandlerSequence answers the first request with its first handler, the second request
// with its second, and so on. The last handler answers all further requests.
type HandlerSequence struct {
	*Env
	Handlers []http.HandlerFunc

	mu           sync.Mutex
	requestTimes []time.Time // guarded by mu; the arrival time of each request
}

// Serve starts an http.Server with the handler h, and returns a route to it.
func (e *Env) Serve(h http.Handler) *Route {
	e.Helper()
	e.Use(InProcess)
	return e.ServeOnAnyTarget(h)
}

// ServeOnAnyTarget is like Serve, for cases that also run against targets without the
// ability InProcess.
func (e *Env) ServeOnAnyTarget(h http.Handler) *Route {
	e.Helper()
	s := e.Setup
	s.ServerTransport, s.HTTP2 = e.Variant.Server, e.Variant.HTTP2
	return e.RouteTo(StartServer(e.T, s, h, certs.ServeTrusted, nil))
}

// ServeSequence starts a server that answers successive requests with successive handlers.
func (e *Env) ServeSequence(steps ...http.HandlerFunc) (*HandlerSequence, *Route) {
	s := &HandlerSequence{Env: e, Handlers: steps}
	return s, e.Serve(s)
}

// ServeHTTP calls the next handler.
func (h *HandlerSequence) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requestTimes = append(h.requestTimes, time.Now())
	step := h.Handlers[min(len(h.requestTimes), len(h.Handlers))-1]
	h.mu.Unlock()
	step(w, r)
}

// RequestTimes returns the arrival times of all requests.
func (h *HandlerSequence) RequestTimes() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requestTimes)
}

// sendEvents sends events. It ignores send errors, because the client may have
// disconnected.
func sendEvents(s *transport.Stream, events ...listwatch.Event) {
	for _, e := range events {
		if frame, err := s.Encoder.Frame(framing.FromEvent(e)); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
	}
}

// SendThenEnd returns a handler that sends events and ends the watch cleanly.
func (v Variant) SendThenEnd(events ...listwatch.Event) http.HandlerFunc {
	return v.Accept(transport.Options{}, func(s *transport.Stream, _ <-chan struct{}) {
		sendEvents(s, events...)
		_ = s.Sender.Close(transport.Finished)
	})
}

// SendError returns a handler that ends the watch with an ERROR event.
func (v Variant) SendError(cause error) http.HandlerFunc {
	return v.Accept(transport.Options{}, func(s *transport.Stream, _ <-chan struct{}) {
		if frame, err := s.Encoder.Frame(framing.FromError(cause)); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
		_ = s.Sender.Close(transport.Finished)
	})
}

// SendThenHold returns a handler that sends events, and aborts the watch when the given
// channel is closed.
func (v Variant) SendThenHold(until <-chan struct{}, events ...listwatch.Event) http.HandlerFunc {
	return v.Accept(transport.Options{}, func(s *transport.Stream, done <-chan struct{}) {
		sendEvents(s, events...)
		select {
		case <-until:
		case <-done:
		}
		if s.Sender.Close(transport.Abort) != nil || !s.Detached {
			panic(http.ErrAbortHandler)
		}
	})
}

// SendThenFallSilent returns a handler that sends events and then nothing more, not even
// pings.
func (v Variant) SendThenFallSilent(events ...listwatch.Event) http.HandlerFunc {
	return v.Accept(transport.Options{PingInterval: -1}, func(s *transport.Stream, done <-chan struct{}) {
		sendEvents(s, events...)
		<-done
		_ = s.Sender.Close(transport.Abort)
	})
}

// RecordVersion returns a handler that sends the resourceVersion of the request to a
// channel and does not respond.
func RecordVersion(versions chan<- string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case versions <- r.URL.Query().Get("resourceVersion"):
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}
}

// Respond returns a handler that sends a plain response. header consists of pairs of a name and a
// value. If none of them is Content-Type, a JSON object has type application/json.
func Respond(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", JSONMediaType)
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// StatusJSON returns a Status as JSON.
func StatusJSON(code int, reason string, details *kubestatus.Details) string {
	return EncodeJSON(kubestatus.Status{
		Kind: "Status", APIVersion: "v1", Status: "Failure", Message: "on purpose", Reason: reason,
		Code: code, Details: details,
	})
}

// AddedEvent returns an ADDED event for an object whose resourceVersion is rv. If rv is not
// a valid version, the event itself has version 1.
func AddedEvent(name, rv string) listwatch.Event {
	v, err := listwatch.ParseVersion(rv)
	if err != nil {
		v = 1
	}
	data := fmt.Sprintf(
		`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"name":%q,"resourceVersion":%q}}`, name,
		rv)
	return listwatch.Event{
		Type: listwatch.Added, Version: v, Object: &listwatch.Object{Key: KeyOf(name), Version: v, Data: []byte(data)},
	}
}

// InitialEventsEnd returns the bookmark that ends the initial events.
func InitialEventsEnd(v listwatch.Version) listwatch.Event {
	d := listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}
	return listwatch.NewSynced(d, listwatch.State{Version: v}, 0)
}

// ServeWatches starts a server that the case configured itself. It aborts the watches that
// are still open at the end of the case.
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
