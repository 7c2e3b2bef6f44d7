package watchserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

const initialEvents = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// synced reads the bookmark that ends the initial events.
func (w *openWatch) synced() listwatch.Event {
	w.Helper()
	received, err := w.Receive()
	if err != nil {
		w.Fatal(err)
	}
	e, err := received.Event()
	if err != nil || e.Type != listwatch.Synced {
		w.Fatalf("%s: got %v %s, %v, want the end of the initial events", w.transport, e.Type, received.Object, err)
	}
	return e
}

// since returns the parameters of a client that has the state of e.
func since(e listwatch.Event) string {
	return fmt.Sprintf("%s&initialEventsSince=%d&initialEventsState=%s", initialEvents, e.Version,
		url.QueryEscape(e.State().ID))
}

func TestWatchSendsTheDifference(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		for _, name := range []string{"a", "b", "c"} {
			f.put(name, nil)
		}
		w := f.watch(c, initialEvents)
		w.want("ADDED a", "ADDED b", "ADDED c")
		had := w.synced()
		f.put("b", nil)
		if _, err := f.flags.Delete(f.Context(), listwatch.Key{Name: "c"}, 0); err != nil {
			f.Fatal(err)
		}
		w = f.watch(c, since(had))
		w.want("ADDED b", "DELETED c")
		e := w.synced()
		if v, ok := e.Since(); !ok || v != had.Version {
			t.Errorf("got %s, want a difference since %d", e.Object.Data, had.Version)
		}
		f.put("a", nil)
		w.want("MODIFIED a")
		w = f.watch(c, since(e))
		w.want("ADDED a")
		w.synced()
	})
}

// A client that lists, and has no initial events, learns the state from bookmarks.
func TestBookmarksIdentifyTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		c := f.Client("chunked")
		f.put("a", nil)
		w := f.watch(c, initialEvents)
		w.want("ADDED a")
		e := w.synced()
		w = f.watch(c, fmt.Sprintf("allowWatchBookmarks=true&resourceVersion=%d", e.Version))
		received, err := w.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if bookmark, err := received.Event(); err != nil || bookmark.State() != e.State() {
			t.Errorf("got %s, %v, want a bookmark with the state %+v", received.Object, err, e.State())
		}
	})
}

// TestServerSendsTheWholeState lists why a request with initialEventsSince does not get a
// difference.
func TestServerSendsTheWholeState(t *testing.T) {
	f := newFixture(t, nil)
	c := f.Client("chunked")
	f.put("a", nil)
	w := f.watch(c, initialEvents)
	w.want("ADDED a")
	had := w.synced()
	f.put("b", nil)
	request := since(had)
	for reason, query := range map[string]string{
		"no state":          strings.ReplaceAll(request, "initialEventsState", "ignored"),
		"another state":     request + "x",
		"another selection": request + "&labelSelector=" + url.QueryEscape("!none"),
		"a later version":   strings.ReplaceAll(request, fmt.Sprint("Since=", had.Version), "Since=99"),
		"no version":        strings.ReplaceAll(request, fmt.Sprint("Since=", had.Version), "Since=0"),
	} {
		w := f.watch(c, query)
		w.want("ADDED a", "ADDED b")
		if e := w.synced(); strings.Contains(string(e.Object.Data), listwatch.AnnotationSince) {
			t.Errorf("%s: got the mark of a difference: %s", reason, e.Object.Data)
		}
	}
	// Without bookmarks the client could not tell a difference from a state.
	f.watch(c, strings.ReplaceAll(request, "&allowWatchBookmarks=true", "")).want("ADDED a", "ADDED b")
	if _, err := f.tryWatch(c, strings.ReplaceAll(request, "Since=", "Since=x")); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v for a version that is not decimal, want Invalid", err)
	}
}

// An endpoint may restrict its user to other objects while the user is away.
func TestNewScopeGetsTheWholeState(t *testing.T) {
	f := newFixture(t, nil)
	var scope listwatch.LabelSelector
	restrict := func(team string) {
		var err error
		if scope, err = listwatch.LabelEquals("team", team); err != nil {
			t.Fatal(err)
		}
	}
	restrict("a")
	f.endpoint = func(*http.Request) watchserver.Endpoint {
		return watchserver.Endpoint{Source: f.flags, Selection: listwatch.Selection{Labels: scope}}
	}
	f.put("a", map[string]string{"team": "a"})
	f.put("b", map[string]string{"team": "b"})
	c := f.Client("chunked")
	w := f.watch(c, initialEvents)
	w.want("ADDED a")
	had := w.synced()
	restrict("b")
	w = f.watch(c, since(had))
	w.want("ADDED b")
	if _, ok := w.synced().Since(); ok {
		t.Error("got a difference between the states of two scopes")
	}
}
