package transport

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/testkit"
)

// plainWriter is a ResponseWriter without any optional methods.
type plainWriter struct{ http.ResponseWriter }

// wrapper is a ResponseWriter with an Unwrap method.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestOpenResponseRequiresFlush(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	rec := httptest.NewRecorder()
	_, err := OpenResponse(wrapper{plainWriter{rec}}, r, Options{}, Encoder{})
	if _, ok := errors.AsType[*listwatch.Error](err); !ok || rec.Flushed {
		t.Errorf("got error %v, flushed %v; want a *listwatch.Error before any flush", err, rec.Flushed)
	}
	s, err := OpenResponse(wrapper{rec}, r, Options{}, Encoder{})
	if err != nil || !rec.Flushed || rec.Code != http.StatusOK {
		t.Fatalf("got status %d, %v; flushed %v", rec.Code, err, rec.Flushed)
	}
	if err := s.Sender.Close(Abort); err == nil {
		t.Error("Close(Abort) returned no error, although it cannot reach the connection")
	}
	done := make(chan struct{})
	s.OnDone(func() { close(done) })
	<-done
}

func TestNegotiateSetsMissingHeaders(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept", "text/event-stream")
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Origin")
	encoder, err := Negotiate(w, r, Options{}, &Envelope{})
	if err != nil || encoder.Framer != (framing.SSE{}) {
		t.Fatalf("got %v, %v", encoder, err)
	}
	want := http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"},
		"Incremental": {"?1"},
		"Vary":        {"Origin", "Accept", "Accept-Encoding"},
	}
	for name := range want {
		if got := w.Header()[name]; !slices.Equal(got, want[name]) {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
}

func TestNegotiateErrorWritesNothing(t *testing.T) {
	for accept, status := range map[string]int{"image/png": 406, "application/json;q=0": 406, ";;": 406} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		_, err := Negotiate(w, r, Options{}, &Envelope{})
		testkit.WantStatus(t, accept, err, status)
		if w.Header().Get("Content-Type") != "" || w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept %q: the error set the headers %v", accept, w.Header())
		}
		if w.Body.Len() > 0 {
			t.Errorf("Accept %q: the error wrote %q", accept, w.Body)
		}
	}
}
