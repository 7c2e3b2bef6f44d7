package transport

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

func TestCoalesceKeepsEveryByteInOrderAndWritesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(0, 3*BatchBytes))).Draw(t, "sizes")
		var frames [][]byte
		var want []byte
		for i, n := range sizes {
			frames = append(frames, bytes.Repeat([]byte{byte(i)}, n))
			want = append(want, frames[i]...)
		}
		var got []byte
		writes := 0
		err := Coalesce(frames, func(p []byte) error {
			if len(p) == 0 || len(p) > BatchBytes {
				t.Fatalf("a write of %d bytes", len(p))
			}
			got = append(got, p...)
			writes++
			return nil
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes became %d, %v", len(want), len(got), err)
		}
		if most := 3*(len(want)/BatchBytes) + 2; writes > most {
			t.Fatalf("%d bytes took %d writes, want at most %d", len(want), writes, most)
		}
	})
}

func TestCoalesceStopsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	for _, frames := range [][][]byte{{make([]byte, 5*BatchBytes)}, {make([]byte, 5*BatchBytes), {1}}, {{1}, make([]byte, BatchBytes)}} {
		writes := 0
		err := Coalesce(frames, func([]byte) error { writes++; return broken })
		if err != broken || writes != 1 {
			t.Errorf("got %v after %d writes", err, writes)
		}
	}
}

func TestDeadlineMovesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved := 0
		d := Deadline{Timeout: time.Second, SetFunc: func(at time.Time) error {
			moved++
			if wait := time.Until(at); wait < time.Second || wait > 2*time.Second {
				t.Errorf("a write gets %v", wait)
			}
			return nil
		}}
		for range 1000 {
			d.Set()
			time.Sleep(10 * time.Millisecond)
		}
		if moved > 10 {
			t.Errorf("the deadline was moved %d times in 10 s", moved)
		}
		off := Deadline{Timeout: -1, SetFunc: func(time.Time) error { t.Error("no limit set a deadline"); return nil }}
		off.Set()
	})
}

func TestTurnIsGivenUpAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := NewTurn()
		if !turn.Take(0) {
			t.Fatal("a free turn was not given")
		}
		start := time.Now()
		if turn.Take(time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("waited %v for a turn that was held", time.Since(start))
		}
		time.AfterFunc(time.Hour, turn.Release)
		if !turn.Take(-1) {
			t.Error("waiting without a limit gave up")
		}
	})
}

// plainWriter is a ResponseWriter without any of the optional methods.
type plainWriter struct{ http.ResponseWriter }

// wrapper leads to what it wraps.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type noGuard struct{}

func (noGuard) Begin()       {}
func (noGuard) End()         {}
func (noGuard) Abort() error { return nil }

func TestOpenResponseRefusesAWriterThatCannotFlush(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	rec := httptest.NewRecorder()
	_, err := OpenResponse(wrapper{plainWriter{rec}}, r, Options{}, nil, noGuard{})
	if _, ok := errors.AsType[*listwatch.Error](err); !ok || rec.Flushed {
		t.Errorf("got %v", err)
	}
	s, err := OpenResponse(wrapper{rec}, r, Options{}, nil, noGuard{})
	if err != nil || !rec.Flushed || rec.Code != http.StatusOK {
		t.Fatalf("got %v; flushed %v", err, rec.Flushed)
	}
	if err := s.Sender.Close(Abort); err == nil {
		t.Error("an abort that can't reach the connection must say so: the handler has to panic")
	}
	<-s.Done
}

func TestNegotiateSetsHeadersThatTheCallerHasNot(t *testing.T) {
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
		"Vary": {"Origin", "Accept", "Accept-Encoding"},
	}
	for name := range want {
		if got := w.Header()[name]; !slices.Equal(got, want[name]) {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
}

func TestNegotiateRefusesAndWritesNothing(t *testing.T) {
	for accept, status := range map[string]int{"image/png": 406, "application/json;q=0": 406, ";;": 400} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		_, err := Negotiate(w, r, Options{}, &Envelope{})
		e, ok := errors.AsType[*listwatch.Error](err)
		if !ok || e.HTTPStatus() != status {
			t.Errorf("Accept %q: got %v, want status %d", accept, err, status)
		}
		if w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" || w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept %q: the refusal left %v", accept, w.Header())
		}
	}
}
