package convert

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// upper returns o with its data in capitals. It refuses the object "bad".
func upper(_ context.Context, o *listwatch.Object) (*listwatch.Object, error) {
	if o.Key.Name == "bad" {
		return nil, errors.New("bad cannot be converted")
	}
	c := *o
	c.Data = []byte(strings.ToUpper(string(o.Data)))
	return &c, nil
}

func open(t *testing.T, names ...string) *store.Collection {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := things.Create(t.Context(), fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name)); err != nil {
			t.Fatal(err)
		}
	}
	return things
}

// A watch delivers the events before an object that cannot be converted, and then fails for good.
// The server must learn from Progress that there is something left to read.
func TestWatchFailsAfterTheEventsBeforeAMisfit(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		t.Run(fmt.Sprint("blocks ", blocks), func(t *testing.T) {
			c := &Conversion{Object: upper, Blocks: blocks}
			w, err := c.Watch(t.Context(), open(t, "a", "bad", "c"),
				listwatch.Query{InitialEvents: listwatch.InitialEventsYes})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			events := make([]listwatch.Event, 8)
			n, err := w.Next(t.Context(), events)
			if n != 1 || err != nil || !strings.Contains(string(events[0].Object.Data), `"NAME":"A"`) {
				t.Fatalf("got %d events, %v; want the first object in capitals", n, err)
			}
			p, isPoller := w.(listwatch.Poller)
			if isPoller == blocks {
				t.Errorf("the watcher is a Poller: %v", isPoller)
			}
			if isPoller && !p.Progress().More {
				t.Error("Progress does not tell that there is more to read")
			}
			for range 2 {
				n, err := w.Next(t.Context(), events)
				if n != 0 || err == nil || err.Error() != "bad cannot be converted" {
					t.Errorf("got %d events, %v; want the error of the conversion", n, err)
				}
			}
		})
	}
}

func TestOwnConvertsBookmarks(t *testing.T) {
	mark := func(_ context.Context, o *listwatch.Object) (*listwatch.Object, error) {
		c := *o
		c.Data = []byte("own")
		return &c, nil
	}
	w, err := (&Conversion{Object: upper, Own: mark}).Watch(t.Context(), open(t, "a"),
		listwatch.Query{InitialEvents: listwatch.InitialEventsYes, Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	events := make([]listwatch.Event, 8)
	n, err := w.Next(t.Context(), events)
	if n != 2 || err != nil || events[1].Type != listwatch.Synced || string(events[1].Object.Data) != "own" {
		t.Errorf("got %d events, %v: %+v; want an object and a converted bookmark", n, err, events[:n])
	}
}

func TestListFailsIfAnObjectDoes(t *testing.T) {
	c := &Conversion{Object: upper}
	if page, err := c.List(t.Context(), open(t, "a"), listwatch.Query{}); err != nil ||
		!strings.Contains(string(page.Items[0].Data), `"NAME":"A"`) {
		t.Errorf("got %v, %v; want an object in capitals", page.Items, err)
	}
	if page, err := c.List(t.Context(), open(t, "a", "bad"), listwatch.Query{}); err == nil || len(page.Items) > 0 {
		t.Errorf("got %v, %v; want only an error", page.Items, err)
	}
}
