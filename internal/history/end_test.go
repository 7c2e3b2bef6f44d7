package history

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

func TestWatchersOfALogThatEndsReadWhatIsThereAndThenItsError(t *testing.T) {
	l := New(Options{})
	behind, err := l.Watch(t.Context(), listwatch.Query{InitialEvents: listwatch.No})
	if err != nil {
		t.Fatal(err)
	}
	put(l, listwatch.Key{Name: "a"}, nil)
	l.CloseWithError(io.EOF)
	l.CloseWithError(errors.New("too late"))
	var events [4]listwatch.Event
	if n, err := behind.Next(t.Context(), events[:]); n != 1 || err != nil {
		t.Errorf("got %d, %v; want the event before the end", n, err)
	}
	if n, err := behind.Next(t.Context(), events[:]); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v; want io.EOF", n, err)
	}
	late, err := l.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := late.Next(t.Context(), events[:]); n != 1 || err != nil || !events[0].Initial {
		t.Errorf("got %d, %v of a watch after the end; want the state", n, err)
	}
	if _, err := late.Next(t.Context(), events[:]); err != io.EOF {
		t.Errorf("got %v, want io.EOF", err)
	}
	if page, err := l.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 1 {
		t.Errorf("a list after the end: %+v, %v; want the state", page, err)
	}
}

func TestTheEndOfALogWakesWhoSleepsAndWhoWaitsForTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		put(l, listwatch.Key{Name: "a"}, nil)
		ended := make(chan error, 2)
		for _, q := range []listwatch.Query{{InitialEvents: listwatch.No}, {Start: listwatch.At, Version: 1 << 40}} {
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
		began, gone := time.Now(), errors.New("gone")
		l.CloseWithError(gone)
		for range 2 {
			if err := <-ended; err != gone {
				t.Errorf("got %v, want the end of the log", err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("they were told after %v", took)
		}
	})
}

func TestAnEndedLogKeepsNobodyWaitingForTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, gone := New(Options{}), errors.New("gone")
		l.CloseWithError(gone)
		began := time.Now()
		w, err := l.Watch(t.Context(), listwatch.Query{Start: listwatch.At, Version: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); err != gone || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want the end of the log at once", err, time.Since(began))
		}
	})
}
