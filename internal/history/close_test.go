package history

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

func TestClosedLogServesItsRemainingEvents(t *testing.T) {
	l := New(Options{})
	lagging, err := l.Watch(t.Context(), listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	if err != nil {
		t.Fatal(err)
	}
	put(l, listwatch.Key{Name: "a"}, nil)
	l.CloseWithError(io.EOF)
	l.CloseWithError(errors.New("second call"))
	var events [4]listwatch.Event
	if n, err := lagging.Next(t.Context(), events[:]); n != 1 || err != nil {
		t.Errorf("got %d, %v; want the event before the close", n, err)
	}
	if n, err := lagging.Next(t.Context(), events[:]); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v; want io.EOF", n, err)
	}
	late, err := l.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := late.Next(t.Context(), events[:]); n != 1 || err != nil || !events[0].Initial {
		t.Errorf("got %d, %v, %+v from a watch of the closed log; want the state", n, err, events[0])
	}
	if _, err := late.Next(t.Context(), events[:]); err != io.EOF {
		t.Errorf("got %v, want io.EOF", err)
	}
	if page, err := l.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 1 {
		t.Errorf("a list of the closed log: %+v, %v; want the state", page, err)
	}
}

func TestCloseOfALogWakesAllItsCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		put(l, listwatch.Key{Name: "a"}, nil)
		ended := make(chan error, 2)
		for _, q := range []listwatch.Query{
			{InitialEvents: listwatch.InitialEventsNo},
			{Start: listwatch.StartAt, Version: 1 << 40},
		} {
			w, err := l.Watch(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := w.Next(t.Context(), make([]listwatch.Event, 1))
				ended <- err
				w.Close()
			}()
		}
		synctest.Wait()
		start, closed := time.Now(), errors.New("closed")
		l.CloseWithError(closed)
		for range 2 {
			if err := <-ended; err != closed {
				t.Errorf("got %v, want %v", err, closed)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("they returned after %v, want at once", took)
		}
	})
}

func TestClosedLogFailsFutureVersionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, closed := New(Options{}), errors.New("closed")
		l.CloseWithError(closed)
		start := time.Now()
		w, err := l.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); err != closed || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want %v at once", err, time.Since(start), closed)
		}
	})
}
