package crudserver

import (
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

func newCollection(t *testing.T, s store.CollectionSpec) *store.Collection {
	t.Helper()
	return testkit.Must(memory.Open(memory.Options{}).Collection(s))(t)
}

func serve(t *testing.T, h *Handler) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// /api/v1/maps looks like a path of the Kubernetes API but is not one, so the client needs
// PlainPaths.
func TestCollectionWritesToAnyPath(t *testing.T) {
	for path, plain := range map[string]bool{
		"": false, "/maps": false, "/tenants/a b/maps/": false,
		"/api/v1/maps": true,
	} {
		h := &Handler{
			Path:       path,
			Collection: newCollection(t, store.CollectionSpec{Kind: "ConfigMap", Namespaced: true}),
		}
		t.Run(path, func(t *testing.T) {
			remote := &client.Remote{URL: serve(t, h) + path, PlainPaths: plain}
			defer remote.Close()
			collectiontest.Run(t, remote, "", "default")
		})
	}
}

func TestCollectionWithoutNamespaces(t *testing.T) {
	h := &Handler{Path: "/maps", Collection: newCollection(t, store.CollectionSpec{Kind: "ConfigMap"})}
	remote := &client.Remote{URL: serve(t, h) + "/maps"}
	defer remote.Close()
	collectiontest.Run(t, remote, "v1", "")
}

// A collection in this process must pass the same tests as a collection behind a URL.
func TestCollectionInThisProcess(t *testing.T) {
	collectiontest.Run(t, newCollection(t, store.CollectionSpec{Kind: "ConfigMap", Namespaced: true}), "v1", "default")
}

// A controller that deletes over HTTP can wait until its informer has seen the delete.
func TestDeleteReturnsItsVersion(t *testing.T) {
	c := newCollection(t, store.CollectionSpec{Kind: "ConfigMap"})
	remote := &client.Remote{URL: serve(t, &Handler{Path: "/maps", Collection: c}) + "/maps"}
	defer remote.Close()
	maps := typed.Collection[collectiontest.ConfigMap]{Store: remote}
	m, err := maps.Create(t.Context(), collectiontest.ConfigMap{Metadata: listwatch.Metadata{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	last, err := maps.Delete(t.Context(), m.Key(), 0)
	if newest := c.Stats().Newest; err != nil || last.Version() != newest || last.UID != m.UID {
		t.Errorf("got %+v, error %v, want the last state of %s at version %d", last, err, m.UID, newest)
	}
}

func TestWatchShowsWrites(t *testing.T) {
	h := &Handler{
		Path:       "/maps",
		Collection: newCollection(t, store.CollectionSpec{Kind: "ConfigMap", Namespaced: true}),
	}
	url := serve(t, h)
	writer := &client.Remote{URL: url + "/maps"}
	defer writer.Close()
	maps := typed.Collection[collectiontest.ConfigMap]{Store: writer}
	watches := make(map[string]listwatch.Watcher)
	for _, path := range []string{"", "/a", "/a/x"} {
		remote := &client.Remote{URL: url + "/maps" + path}
		defer remote.Close()
		w, err := remote.Watch(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watches[path] = w
	}
	for _, key := range []listwatch.Key{
		{Namespace: "b", Name: "x"},
		{Namespace: "a", Name: "y"},
		{Namespace: "a", Name: "x"},
	} {
		m := collectiontest.ConfigMap{Metadata: listwatch.Metadata{Namespace: key.Namespace, Name: key.Name}}
		if _, err := maps.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{"": {"b/x", "a/y", "a/x"}, "/a": {"a/y", "a/x"}, "/a/x": {"a/x"}} {
		for _, want := range want {
			var event [1]listwatch.Event
			if _, err := watches[path].Next(t.Context(), event[:]); err != nil || event[0].Object.Key.String() != want {
				t.Fatalf("%s: got %v, error %v, want %s", path, event[0].Object, err, want)
			}
		}
	}
}
