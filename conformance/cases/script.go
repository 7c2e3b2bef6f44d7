package cases

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A script answers the first request with its first step, the next with the second; when it is over, the last step answers all.
type script struct {
	*env
	steps []http.HandlerFunc

	mu sync.Mutex
	at []time.Time // guarded by mu; of all requests so far
}

// open starts an http.Server of ours with h.
func (e *env) open(h http.Handler) *site {
	e.Helper()
	e.use(InProcess)
	return e.openAny(h)
}

// openAny is open in a case that can do without.
func (e *env) openAny(h http.Handler) *site {
	e.Helper()
	s := e.setup
	s.ServerTransport = e.way.server
	return e.reach(openSite(e.T, s, h, sound))
}

// play opens a site that does steps.
func (e *env) play(steps ...http.HandlerFunc) (*script, *site) {
	s := &script{env: e, steps: steps}
	return s, e.open(s)
}

// ServeHTTP does the next step.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	step := s.steps[min(len(s.at), len(s.steps))-1]
	s.mu.Unlock()
	step(w, r)
}

// times returns when the requests came.
func (s *script) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// accepts is a step: a watch, with which f goes on. It ends when f returns.
func (w way) accepts(o transport.Options, f func(*transport.Stream)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		stream, err := w.server.Accept(rw, r, o)
		if err != nil {
			watchserver.WriteError(rw, r, err)
			return
		}
		f(stream)
	}
}

// tell sends events to a client, which may have left.
func tell(s *transport.Stream, events ...listwatch.Event) {
	for _, e := range events {
		if frame, err := s.Encoder.Event(e); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
	}
}

// sends is a step: a watch that has these events and then a clean end.
func (w way) sends(events ...listwatch.Event) http.HandlerFunc {
	return w.accepts(transport.Options{}, func(s *transport.Stream) {
		tell(s, events...)
		_ = s.Sender.Close(transport.Finished)
	})
}

// fails is a step: a watch that ends with an ERROR event.
func (w way) fails(cause error) http.HandlerFunc {
	return w.accepts(transport.Options{}, func(s *transport.Stream) {
		if frame, err := s.Encoder.Error(cause); err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
		_ = s.Sender.Close(transport.Finished)
	})
}

// holds is a step: a watch that has these events, and is cut off when the channel is closed.
func (w way) holds(until <-chan struct{}, events ...listwatch.Event) http.HandlerFunc {
	return w.accepts(transport.Options{}, func(s *transport.Stream) {
		tell(s, events...)
		select {
		case <-until:
		case <-s.Done:
		}
		if s.Sender.Close(transport.Abort) != nil || !s.Detached {
			panic(http.ErrAbortHandler)
		}
	})
}

// fallsSilent is a step: a watch that has these events, and then not even a ping.
func (w way) fallsSilent(events ...listwatch.Event) http.HandlerFunc {
	return w.accepts(transport.Options{PingInterval: -1}, func(s *transport.Stream) {
		tell(s, events...)
		<-s.Done
		_ = s.Sender.Close(transport.Abort)
	})
}

// recordVersion is a step: it tells the resourceVersion that it is asked for, and does not answer.
func recordVersion(asked chan<- string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Query().Get("resourceVersion"):
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}
}

// says is a step: an answer that is no stream. header are pairs.
func says(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// status is the JSON of a Status.
func status(code int, reason string, details *listwatch.StatusDetails) string {
	s := listwatch.Status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: "on purpose", Reason: reason, Code: code, Details: details}
	body, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// added is an ADDED event of a thing; rv is what it bears as its version.
func added(name, rv string) listwatch.Event {
	v, err := listwatch.ParseVersion(rv)
	if err != nil {
		v = 1
	}
	data := fmt.Sprintf(`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"name":%q,"resourceVersion":%q}}`, name, rv)
	return listwatch.Event{Type: listwatch.Added, Version: v, Object: &listwatch.Object{Key: keyOf(name), Version: v, Data: []byte(data)}}
}

// synced is the bookmark that ends initial events.
func synced(v listwatch.Version) listwatch.Event {
	return listwatch.NewBookmark(listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}, v, true)
}
