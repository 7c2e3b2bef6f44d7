package relay_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
)

func TestRelayKeepsReducedObjects(t *testing.T) {
	o := openOrigin(t)
	o.put("a", "red")
	r := openRelay(t, o, relay.Options{Projection: testkit.Projection(t, "spec.color")})
	page := mustList(t, r, listwatch.Query{})
	if data := string(page.Items[0].Data); !strings.Contains(data, `"spec":{"color":"red"}}`) ||
		strings.Contains(data, "labels") {
		t.Errorf("got %s, want only the color", data)
	}
	w, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: page.Version, Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	hidden, err := o.Patch(t.Context(), page.Items[0].Key,
		listwatch.Patch{Type: listwatch.MergePatch, Data: []byte(`{"spec":{"big":1}}`)})
	if err != nil {
		t.Fatal(err)
	}
	changed := o.put("a", "blue")
	var events [1]listwatch.Event
	if _, err := w.Next(t.Context(), events[:]); err != nil || events[0].Version != changed.Version ||
		hidden.Version >= changed.Version {
		t.Errorf("got an event at %d, %v, want the one at %d", events[0].Version, err, changed.Version)
	}
}

func TestRelayRefusesMembersThatItLacks(t *testing.T) {
	o := openOrigin(t)
	o.put("a", "red")
	r := openRelay(t, o, relay.Options{Projection: testkit.Projection(t, "spec.color,-metadata.labels")})
	server := &watchserver.Server{Source: r}
	for query, want := range map[string]int{
		"":                                http.StatusOK,
		"fields=spec.color":               http.StatusOK,
		"fields=metadata.name":            http.StatusOK,
		"fieldSelector=spec.color=red":    http.StatusOK,
		"fields=spec":                     http.StatusBadRequest,
		"fields=-status":                  http.StatusBadRequest,
		"labelSelector=color=red":         http.StatusBadRequest,
		"labelSelector=color=red&watch=1": http.StatusBadRequest,
		"fields=metadata.labels&watch=1":  http.StatusBadRequest,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+values.Encode(), nil))
		if w.Code != want ||
			want == http.StatusBadRequest && !strings.Contains(w.Body.String(), "the relay has only spec.color") {
			t.Errorf("%s: got %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
}
