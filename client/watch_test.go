package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/reflector"
)

func TestWatchAsksInKubernetesWords(t *testing.T) {
	labels, _ := listwatch.ParseLabelSelector("a=b")
	fields, _ := listwatch.ParseFieldSelector("spec.x=y")
	tests := []struct {
		url  string
		q    listwatch.Query
		want string
	}{
		{"http://h/t", listwatch.Query{}, "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"},
		{"http://h/t", listwatch.Query{Start: listwatch.Any}, "allowWatchBookmarks=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"},
		{"http://h/t", from(7), "allowWatchBookmarks=true&resourceVersion=7&watch=true"},
		{"http://h/t", listwatch.Query{Start: listwatch.At, Version: 7, InitialEvents: listwatch.Yes}, "allowWatchBookmarks=true&resourceVersion=7&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"},
		{
			"http://h/t?limit=3&watch=0&timeoutSeconds=9&labelSelector=c",
			listwatch.Query{Start: listwatch.At, Version: 7, Labels: labels},
			"allowWatchBookmarks=true&labelSelector=c%2Ca%3Db&resourceVersion=7&timeoutSeconds=9&watch=true",
		},
		{
			"http://h/t",
			listwatch.Query{Start: listwatch.At, Version: 7, Namespace: "ns", Name: "n", Fields: fields},
			"allowWatchBookmarks=true&fieldSelector=metadata.name%3Dn%2Cmetadata.namespace%3Dns%2Cspec.x%3Dy&resourceVersion=7&watch=true",
		},
	}
	for _, tt := range tests {
		p := always(says())
		r := remote(p)
		r.URL = tt.url
		watch(t, r, tt.q).Close()
		if got := p.seen()[0].query.Encode(); got != tt.want {
			t.Errorf("%s, %+v: got %s, want %s", tt.url, tt.q, got, tt.want)
		}
	}
}

func TestQueriesThatNobodyCouldServeAreRefused(t *testing.T) {
	for _, q := range []listwatch.Query{{Start: listwatch.At}, {Continue: "x"}} {
		if _, err := remote(always(says())).Watch(t.Context(), q); !errors.Is(err, listwatch.Invalid) {
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

func TestRefusalIsAnErrorOfWatch(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 406, 410, 429, 500, 503} {
		p := always(refuses(answered(status)))
		_, err := remote(p).Watch(t.Context(), from(1))
		if e := listwatch.AsError(err); e == nil || e.Status != status {
			t.Errorf("status %d: got error %v", status, err)
		}
		if n := len(p.seen()); n != 1 {
			t.Errorf("status %d: dialled %d times, want 1", status, n)
		}
	}
}

func TestInitialEventsAreMarkedAndEndWithSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(says(added("a", 9), added("b", 3), synced(9), added("c", 10)))
		w := watch(t, remote(p), listwatch.Query{Bookmarks: true})
		wantEvents(t, w, "(ADDED/a@9) (ADDED/b@3) SYNCED@9 ADDED/c@10")
	})
}

func TestAnyBookmarkEndsTheInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, remote(always(says(added("a", 9), bookmark(12), added("c", 13), bookmark(14)))), listwatch.Query{Bookmarks: true})
		var batch [4]listwatch.Event
		n := 0
		for n < len(batch) {
			k, err := w.Next(t.Context(), batch[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		if e := batch[1]; e.Type != listwatch.Synced || e.Version != 12 {
			t.Errorf("got %s, want SYNCED@12", spell(e))
		}
		if got := string(batch[1].Object.Data); got != string(synced(12).Object) {
			t.Errorf("got object %s, want one that says so", got)
		}
		if e := batch[3]; e.Type != listwatch.Bookmark {
			t.Errorf("got %s, want BOOKMARK@14", spell(e))
		}
	})
}

// bookmark/not-to-handlers.
func TestBookmarksReachOnlyWhoAskedForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(says(added("a", 9), synced(9), bookmark(20), errCut), says(modified("a", 21)))
		w := watch(t, remote(p), listwatch.Query{})
		wantEvents(t, w, "(ADDED/a@9) MODIFIED/a@21")
		if got, want := p.versions(), " 20"; got != want {
			t.Errorf("resumed from %q, want %q: a bookmark moves the version", got, want)
		}
	})
}

func TestWatchFromNowStartsAtAListedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(says(added("a", 8)))
		r := remote(p)
		lists := serveLists(r, listed(listOf(7, "x")))
		w := watch(t, r, listwatch.Query{Start: listwatch.Any, InitialEvents: listwatch.No})
		wantEvents(t, w, "ADDED/a@8")
		if got := lists.queries(); got != "limit=1" || p.versions() != "7" {
			t.Errorf("listed with %q and watched from %s, want limit=1 and 7", got, p.versions())
		}
	})
}

// initial/fallback.
func TestWatchListsWhereInitialEventsAreRefused(t *testing.T) {
	for _, status := range []int{400, 422} {
		synctest.Test(t, func(t *testing.T) {
			p := inTurn(refuses(answered(status)), says(modified("a", 8)))
			r := remote(p)
			lists := serveLists(r, listed(listOf(7, "a", "b")))
			w := watch(t, r, listwatch.Query{Bookmarks: true})
			wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) SYNCED@7 MODIFIED/a@8")
			w.Close()

			w = watch(t, r, listwatch.Query{})
			wantEvents(t, w, "(ADDED/a@1) (ADDED/b@2) MODIFIED/a@8")
			w.Close()
			if got := p.versions(); got != " 7 7" {
				t.Errorf("watched from %q, want initial events asked for once", got)
			}
			time.Sleep(reflector.WatchListRetryInterval) // in the bubble
			watch(t, r, listwatch.Query{}).Close()
			if got := p.versions(); got != " 7 7 " {
				t.Errorf("watched from %q, want initial events asked for again after an hour", got)
			}
			if got := lists.queries(); got != " " {
				t.Errorf("listed with %q, want no parameters, twice", got)
			}
		})
	}
}

func TestWhatAListRefusesTooIsTheErrorOfWatch(t *testing.T) {
	r := remote(always(refuses(answered(400))))
	serveLists(r, func(int) answer { return answer{status: 400, body: "bad selector"} })
	_, err := r.Watch(t.Context(), listwatch.Query{})
	if !errors.Is(err, listwatch.Invalid) || r.state.watchList.Unsupported() {
		t.Errorf("got error %v, remembered %v; want %v and nothing remembered", err, r.state.watchList.Unsupported(), listwatch.Invalid)
	}
}

func TestAServerThatNeverEndsTheInitialEventsIsListedNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inTurn(says(added("a", 1)), says(modified("a", 8)))
		r := remote(p)
		serveLists(r, listed(listOf(7, "a")))
		w := watch(t, r, listwatch.Query{})
		wantEvents(t, w, "(ADDED/a@1)")
		wantEnd(t, w, listwatch.Expired)
		wantEvents(t, watch(t, r, listwatch.Query{}), "(ADDED/a@1) MODIFIED/a@8")
	})
}

func TestContextOfWatchBoundsOnlyTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := remote(always(says(time.Second, added("a", 2)))).Watch(ctx, from(1))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		wantEvents(t, w, "ADDED/a@2")
	})
}

func TestContextOfWatchEndsADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := &Remote{URL: "http://h/t"}
		r.Network.Dial = hang
		for _, call := range []func() error{
			func() error { _, err := r.Watch(ctx, from(1)); return err },
			func() error { _, err := r.List(ctx, listwatch.Query{}); return err },
		} {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		time.Sleep(10 * time.Second) // until the dials end
	})
}

func TestCloseEndsANextThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, remote(always(says())), from(1))
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
		wantEnd(t, w, io.EOF)
	})
}

func TestCloseDropsWhatWasNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, remote(always(says(added("a", 2)))), from(1))
		synctest.Wait()
		w.Close()
		wantEnd(t, w, io.EOF)
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	busy := make([]any, 2*queueEvents)
	for i := range busy {
		busy[i] = added("a", i+2)
	}
	for name, s := range map[string]script{
		"for events": says(), "for a reader": says(busy...), "for the next try": says(errCut), "for the refused": says(failed(503)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, remote(always(s)), from(1))
			synctest.Wait()
			w.Close()
			synctest.Wait() // a goroutine that is left fails the bubble
			t.Log(name)
		})
	}
}

func TestNextThatIsBrokenOffLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, remote(always(says(time.Minute, added("a", 2)))), from(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := w.Next(ctx, make([]listwatch.Event, 1)); n != 0 || err != ctx.Err() {
			t.Errorf("got %d events, error %v, want %v", n, err, context.DeadlineExceeded)
		}
		wantEvents(t, w, "ADDED/a@2")
		synctest.Wait()
	})
}

func TestReaderGetsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, remote(always(says(added("a", 2), added("b", 3), added("c", 4)))), from(1))
		synctest.Wait()
		n, err := w.Next(t.Context(), make([]listwatch.Event, 16))
		if n != 3 || err != nil {
			t.Errorf("got %d events, error %v, want 3 in one batch", n, err)
		}
	})
}

func TestDescribeTellsWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := always(script{epoch: "e", steps: []any{added("a", 2)}})
		r := remote(p)
		if d := r.Describe(); d.Kind != "" || d.Epoch != "" {
			t.Errorf("got %+v before anything was seen", d)
		}
		wantEvents(t, watch(t, r, from(1)), "ADDED/a@2")
		if d := r.Describe(); d.Kind != "Thing" || d.APIVersion != "v1" || d.Epoch != "e" {
			t.Errorf("got %+v, want Thing of v1 in epoch e", d)
		}
	})
}

func TestWhatIsReleasedIsUsedAgainAndEverythingElseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		var steps []any
		for i := range n {
			steps = append(steps, added(fmt.Sprintf("thing-of-a-hundred-bytes-or-more-%070d", i), i+2))
		}
		w := watch(t, remote(always(says(steps...))), from(1))
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
				t.Fatalf("what was not released became %s", last.Data)
			}
		}
	})
}
