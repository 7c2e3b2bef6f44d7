package controller_test

import (
	"bytes"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestRepeatedEventsAreCounted(t *testing.T) {
	events, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Event", Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	app := controller.Reference{APIVersion: "v1", Kind: "App", Name: "web", UID: "1"}
	for _, e := range []struct{ reason, message string }{
		{"Started", "web-0"},
		{"Started", "web-0"},
		{"Started", "web-1"},
	} {
		// Another Recorder, as after a restart.
		r := controller.Recorder{Events: events, Component: "scaler"}
		if err := r.Record(t.Context(), app, controller.EventNormal, e.reason, e.message); err != nil {
			t.Fatal(err)
		}
	}
	page, err := events.List(t.Context(), listwatch.Query{Selection: listwatch.Selection{Namespace: "default"}})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("got %d events, %v, want 2", len(page.Items), err)
	}
	twice := 0
	for _, o := range page.Items {
		if bytes.Contains(o.Data, []byte(`"message":"web-0"`)) && bytes.Contains(o.Data, []byte(`"count":2`)) {
			twice++
		}
	}
	if twice != 1 {
		t.Errorf("got %s and %s, want the count 2 for web-0", page.Items[0].Data, page.Items[1].Data)
	}
}
