package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
)

func TestWatchSendsKubernetesParameters(t *testing.T) {
	labels, _ := listwatch.ParseLabelSelector("a=b")
	fields, _ := listwatch.ParseFieldSelector("spec.x=y")
	tests := []struct {
		url  string
		q    listwatch.Query
		want string
	}{
		{
			"http://h/t",
			listwatch.Query{},
			"allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
		},
		{
			"http://h/t",
			listwatch.Query{Start: listwatch.StartAny},
			"allowWatchBookmarks=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
		},
		{"http://h/t", watchFrom(7), "allowWatchBookmarks=true&resourceVersion=7&watch=true"},
		{
			"http://h/t",
			listwatch.Query{Start: listwatch.StartAt, Version: 7, InitialEvents: listwatch.InitialEventsYes},
			"allowWatchBookmarks=true&resourceVersion=7&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
		},
		{
			"http://h/t?conflate=9s",
			listwatch.Query{Start: listwatch.StartAt, Version: 7, Conflate: time.Second},
			"allowWatchBookmarks=true&conflate=1s&resourceVersion=7&watch=true",
		},
		{"http://h/t?conflate=9s", watchFrom(7), "allowWatchBookmarks=true&resourceVersion=7&watch=true"},
		{
			"http://h/t?limit=3&watch=0&timeoutSeconds=9&labelSelector=c",
			listwatch.Query{
				Start: listwatch.StartAt, Version: 7,
				Selection: listwatch.Selection{Labels: labels},
			},
			"allowWatchBookmarks=true&labelSelector=c%2Ca%3Db&resourceVersion=7&timeoutSeconds=9&watch=true",
		},
		{
			"http://h/t",
			listwatch.Query{
				Start: listwatch.StartAt, Version: 7,
				Selection: listwatch.Selection{Namespace: "ns", Name: "n", Fields: fields},
			},
			"allowWatchBookmarks=true&fieldSelector=metadata.name%3Dn%2Cmetadata.namespace%3Dns%2Cspec.x%3Dy&resourceVersion=7&watch=true",
		},
	}
	for _, tt := range tests {
		p := always(sends())
		r := newRemote(p)
		r.URL = tt.url
		testkit.Watch(t, r, tt.q).Close()
		if got := p.requests()[0].query.Encode(); got != tt.want {
			t.Errorf("%s, %+v: got %s, want %s", tt.url, tt.q, got, tt.want)
		}
	}
}

func TestWatchRejectsInvalidQueries(t *testing.T) {
	for _, q := range []listwatch.Query{{Start: listwatch.StartAt}, {Continue: "x"}} {
		if _, err := newRemote(always(sends())).Watch(t.Context(), q); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%+v: got error %v, want %v", q, err, listwatch.Invalid)
		}
	}
	for _, url := range []string{"", "things", "ftp://h/t", "http:///t", "ws://h/t", "http://u:secret@h:port/"} {
		_, err := (&Remote{URL: url}).Watch(t.Context(), listwatch.Query{})
		if !errors.Is(err, listwatch.Invalid) {
			t.Errorf("URL %q: got error %v, want %v", url, err, listwatch.Invalid)
		}
	}
}

func TestWatchReturnsTheFirstError(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 406, 410, 429, 500, 503} {
		p := always(refuses(statusError(status)))
		_, err := newRemote(p).Watch(t.Context(), watchFrom(1))
		testkit.WantStatus(t, "watch", err, status)
		if n := len(p.requests()); n != 1 {
			t.Errorf("status %d: %d requests, want 1", status, n)
		}
	}
}

func TestContextBoundsOnlyTheWatchCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := newRemote(always(sends(time.Second, added("a", 2)))).Watch(ctx, watchFrom(1))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		wantEvents(t, w, "ADDED/a@2")
	})
}

func TestContextEndsADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := &Remote{URL: "http://h/t"}
		r.Network.Dial = dialTimeout
		for _, call := range []func() error{
			func() error { _, err := r.Watch(ctx, watchFrom(1)); return err },
			func() error { _, err := r.List(ctx, listwatch.Query{}); return err },
		} {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		time.Sleep(10 * time.Second) // by then all dials have returned
	})
}

func TestCloseInterruptsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Watch(t, newRemote(always(sends())), watchFrom(1))
		done := make(chan error)
		go func() {
			_, err := w.Next(t.Context(), make([]listwatch.Event, 1))
			done <- err
		}()
		synctest.Wait()
		w.Close()
		if err := <-done; err != io.EOF {
			t.Errorf("got error %v, want %v", err, io.EOF)
		}
		w.Close()
		wantError(t, w, io.EOF)
	})
}

func TestCloseDropsUnreadEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Watch(t, newRemote(always(sends(added("a", 2)))), watchFrom(1))
		synctest.Wait()
		w.Close()
		wantError(t, w, io.EOF)
	})
}

func TestServerReadsTheQueueOfARemote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := startServer(t, servertest.Options{})
		origin.put(t, "a", 1)
		server := servertest.Start(t, origin.remote(t, "h2"), servertest.Options{})
		r := &Remote{URL: server.URL("/things"), Network: server.Network, Transports: server.Clients("chunked")}
		defer r.Close()
		w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
		if e := testkit.Read(t, w, 2); e[0].Object.Key.Name != "a" || e[1].Type != listwatch.Synced {
			t.Errorf("got events %v, want a and the end of the initial events", e)
		}
		if o := origin.put(t, "b", 1); testkit.Read(t, w, 1)[0].Version != o.Version {
			t.Errorf("got another version than %d", o.Version)
		}
		stacks := make([]byte, 1<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("watchserver.readAhead")) {
			t.Error("a goroutine copies the events to a second queue")
		}
	})
}

func TestCloseEndsTheGoroutine(t *testing.T) {
	many := make([]any, 2*eventqueue.MaxEvents)
	for i := range many {
		many[i] = added("a", i+2)
	}
	for name, s := range map[string]script{
		"for events": sends(), "for the reader": sends(many...), "for the next attempt": sends(errConnectionLost),
		"after an error": sends(errorEvent(503)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := testkit.Watch(t, newRemote(always(s)), watchFrom(1))
			synctest.Wait()
			w.Close()
			// If the goroutine is still blocked when this function returns, synctest.Test fails.
			synctest.Wait()
			t.Logf("the goroutine waited %s", name)
		})
	}
}

func TestInterruptedNextLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Watch(t, newRemote(always(sends(time.Minute, added("a", 2)))), watchFrom(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := w.Next(ctx, make([]listwatch.Event, 1)); n != 0 || err != ctx.Err() {
			t.Errorf("got %d events, error %v, want %v", n, err, context.DeadlineExceeded)
		}
		wantEvents(t, w, "ADDED/a@2")
		synctest.Wait()
	})
}

func TestNextReturnsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Watch(t, newRemote(always(sends(added("a", 2), added("b", 3), added("c", 4)))), watchFrom(1))
		synctest.Wait()
		n, err := w.Next(t.Context(), make([]listwatch.Event, 16))
		if n != 3 || err != nil {
			t.Errorf("got %d events, error %v, want 3 events at once", n, err)
		}
	})
}

func TestDescribeLearnsFromResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(script{epoch: "e", steps: []any{added("a", 2)}})
		r := newRemote(p)
		if d := r.Describe(); d.Kind != "" || d.Epoch != "" {
			t.Errorf("got %+v before the first response, want nothing", d)
		}
		wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")
		if d := r.Describe(); d.Kind != "Thing" || d.APIVersion != "v1" || d.Epoch != "e" {
			t.Errorf("got %+v, want kind Thing, apiVersion v1 and epoch e", d)
		}
	})
}

func TestReleaseReusesOnlyReleasedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		var steps []any
		for i := range n {
			steps = append(steps, added(fmt.Sprintf("thing-of-a-hundred-bytes-or-more-%070d", i), i+2))
		}
		w := testkit.Watch(t, newRemote(always(sends(steps...))), watchFrom(1))
		releaser, batch := w.(reflector.Releaser), make([]listwatch.Event, 7)
		for seen := 0; seen < n; {
			got, err := w.Next(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range batch[:got] {
				if want := string(thing(e.Object.Key.Name, seen+i+2)); string(e.Object.Data) != want {
					t.Fatalf("got %s, want %s", e.Object.Data, want)
				}
			}
			seen += got
			last := batch[got-1].Object
			data := string(last.Data)
			releaser.Release(batch[:got-1])
			pool.Clone(bytes.Repeat([]byte("x"), 200))
			if string(last.Data) != data {
				t.Fatalf("an object that was not released changed to %s", last.Data)
			}
		}
	})
}
