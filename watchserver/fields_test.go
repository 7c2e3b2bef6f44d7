package watchserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

func TestWatchWithFieldsOmitsHiddenChanges(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		f.put("a", map[string]string{"l": "1"})
		w := f.watch(c, initialEvents+"&fields=metadata.labels")
		if got := w.Header().Get(transport.FieldsHeader); got != "metadata.labels" {
			t.Errorf("got %s: %q, want metadata.labels", transport.FieldsHeader, got)
		}
		w.wantReduced("ADDED", `"labels":{"l":"1"}`)
		had := w.synced()
		f.put("a", map[string]string{"l": "1"}) // changes only enabled
		hidden := f.put("b", nil).Version()
		w.wantReduced("ADDED", `"name":"b"`)
		f.put("a", map[string]string{"l": "2"})
		w.wantReduced("MODIFIED", `"labels":{"l":"2"}`)
		if _, err := f.flags.Delete(f.Context(), listwatch.Key{Name: "b"}, 0); err != nil {
			t.Fatal(err)
		}
		w.wantReduced("DELETED", `"name":"b"`)

		w = f.watch(c, fmt.Sprintf("fields=metadata.labels&resourceVersion=%d", hidden-1))
		w.wantReduced("ADDED", `"name":"b"`)
		w.wantReduced("MODIFIED", `"labels":{"l":"2"}`)

		// A difference contains each object that was written since, with its fields.
		w = f.watch(c, since(had)+"&fields=metadata.labels")
		w.wantReduced("ADDED", `"labels":{"l":"2"}`)
		w.want("DELETED b")
		if _, ok := w.synced().Since(); !ok {
			t.Error("got the whole state, want a difference")
		}
		w = f.watch(c, since(had)+"&fields=enabled")
		w.want("ADDED a")
		if _, ok := w.synced().Since(); ok {
			t.Error("got a difference to a state with other fields")
		}
	})
}

// wantReduced reads an event of the given type whose object contains text, and not the member
// enabled.
func (w *openWatch) wantReduced(eventType, text string) {
	w.Helper()
	received, err := w.Receive()
	if err != nil {
		w.Fatal(err)
	}
	e, err := received.Event()
	if err != nil {
		w.Fatal(err)
	}
	data := string(e.Object.Data)
	if e.Type.String() != eventType || !strings.Contains(data, text) || strings.Contains(data, "enabled") {
		w.Fatalf("%s: got %v %s, want %s with %s and without enabled", w.transport, e.Type, data, eventType, text)
	}
}

func TestBookmarksPassHiddenChanges(t *testing.T) {
	onEachTransport(t, func(s *watchserver.Server) { s.Timing.Bookmark = 1 }, func(f *fixture, c transport.Client) {
		f.put("a", nil)
		w := f.watch(c, initialEvents+"&fields=metadata.labels")
		w.want("ADDED a")
		w.synced()
		v := f.put("a", nil).Version()
		for {
			received, err := w.Receive()
			if err != nil {
				t.Fatal(err)
			}
			e, err := received.Event()
			if err != nil || e.Type != listwatch.Bookmark {
				t.Fatalf("got %v, %v, want a bookmark", e.Type, err)
			}
			if e.Version == v {
				return
			}
		}
	})
}

func TestListWithFieldsReducesObjects(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a", map[string]string{"l": "1"})
	f.put("b", nil)
	body, h := f.get(t, http.StatusOK, "fields=enabled,absent")
	if h.Get(transport.FieldsHeader) != "absent,enabled" {
		t.Errorf("got the header %q, want the canonical form", h.Get(transport.FieldsHeader))
	}
	if strings.Contains(body, "labels") || strings.Contains(body, "generation") ||
		strings.Count(body, `"enabled":false`) != 2 {
		t.Errorf("got %s, want the two objects with their identity and enabled", body)
	}
	if _, h = f.get(t, http.StatusOK, "fields="); h.Get(transport.FieldsHeader) != "" {
		t.Errorf("got the header %q for whole objects", h.Get(transport.FieldsHeader))
	}
	for fields, want := range map[string]string{
		"spec,-metadata.name": `"message":"fields: path \"-metadata.name\": this member is always shown"`,
		"a[0]":                `path \"a\": want a dot, a comma or a name in brackets`,
	} {
		if body, _ := f.get(t, http.StatusBadRequest,
			"fields="+url.QueryEscape(fields)); !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %s", fields, body, want)
		}
	}
}

// get lists the flags and returns the body and the headers of the response.
func (f *fixture) get(t *testing.T, code int, query string) (string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	f.WatchServer.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?"+query, nil))
	if w.Code != code {
		t.Fatalf("%s: got %d %s, want %d", query, w.Code, w.Body, code)
	}
	return w.Body.String(), w.Header()
}

func TestDistinctProjectionsAreLimited(t *testing.T) {
	f := newFixture(t, func(s *watchserver.Server) { s.Limits.Projections = 2 })
	c := f.Client("chunked")
	first := f.watch(c, "fields=a")
	f.watch(c, "fields=b")
	f.watch(c, "fields=b,b") // the same projection
	f.watch(c, "")
	_, err := f.tryWatch(c, "fields=c")
	if e := testkit.WantStatus(t, "a third projection", err,
		http.StatusTooManyRequests); e.Code != listwatch.Unavailable {
		t.Errorf("got %v, want code Unavailable", err)
	}
	first.Close()
	for {
		if w, err := f.tryWatch(c, "fields=c"); err == nil {
			w.Close()
			return
		}
	}
}
