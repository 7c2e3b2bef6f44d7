package kubeapi

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A watch of another version needs no goroutine, and the server can send bookmarks, unless the
// conversion may wait for a webhook.
func TestWatchesOfOtherVersionsCanBePolled(t *testing.T) {
	stored, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "a/v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	spec := store.CollectionSpec{APIVersion: "a/v2", Kind: "Thing"}
	for name, c := range map[string]struct {
		convert Converter
		want    bool
	}{"names": {nil, true}, "webhook": {SetAPIVersion, false}} {
		w, err := InVersion(stored, spec, c.convert, c.convert).Watch(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := w.(listwatch.Poller); got != c.want {
			t.Errorf("%s: the watcher is a Poller: %v, want %v", name, got, c.want)
		}
		_ = w.Close()
	}
}

// A backend in which an object was already at its newest state at each earlier version.
type settled struct{ store.Backend }

func (settled) UnchangedSince(*listwatch.Object, listwatch.Version) bool { return true }

// A writer who has read the version of another server has no conflict in a view either.
func TestVersionOfAnotherServerIsAcceptedInAView(t *testing.T) {
	stored, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "a/v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := stored.Create(t.Context(), []byte(`{"metadata":{"generateName":"x-"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	last, err := stored.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	stored = store.New(stored.Spec(), settled{stored.Backend()})
	view := InVersion(stored, store.CollectionSpec{APIVersion: "a/v2", Kind: "Thing"}, nil, nil)
	_, err = view.Replace(t.Context(), last.Key, []byte(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{}}`))
	if err != nil {
		t.Error(err)
	}
}
