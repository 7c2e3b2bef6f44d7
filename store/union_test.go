package store_test

import (
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// twoCollections returns two collections of one database in memory.
func twoCollections(t *testing.T) (pods, nodes *store.Collection) {
	t.Helper()
	db := memory.Open(memory.Options{})
	pods, err := db.Collection(store.CollectionSpec{Kind: "Pod", Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	if nodes, err = db.Collection(store.CollectionSpec{Kind: "Node"}); err != nil {
		t.Fatal(err)
	}
	return pods, nodes
}

func TestUnionIsOneWatchOfSeveralCollections(t *testing.T) {
	pods, nodes := twoCollections(t)
	u, err := nodes.Union(listwatch.Part{Source: nodes}, listwatch.Part{
		Source: pods, Selection: listwatch.Selection{Namespace: "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, pods, `{"metadata":{"name":"p","namespace":"a"}}`)
	mustCreate(t, pods, `{"metadata":{"name":"q","namespace":"b"}}`)
	n := mustCreate(t, nodes, `{"metadata":{"name":"n"}}`)
	w, err := u.Watch(t.Context(), listwatch.Query{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustCreate(t, pods, `{"metadata":{"name":"r","namespace":"a"}}`)
	var got []string
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Type.String()+" "+e.Object.Key.Name); e.Type == listwatch.Synced &&
			e.Version != n.Version {
			t.Errorf("the bookmark is at %d, want %d", e.Version, n.Version)
		}
		if e.Object.Key.Name == "r" {
			break
		}
	}
	if want := []string{"ADDED n", "ADDED p", "BOOKMARK ", "ADDED r"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := u.List(t.Context(), listwatch.Query{Limit: 1})
	if err != nil || len(page.Items) != 3 || page.Continue != "" {
		t.Errorf("got %d items, token %q, %v; want all 3 in one page", len(page.Items), page.Continue, err)
	}
}

// A user sees the same objects in a union as in a list, whatever the backend of the collections. A
// client that resumes in another scope must list again, also if only one part has another scope.
func TestUnionObeysTheScopesOfItsParts(t *testing.T) {
	pods, nodes := twoCollections(t)
	mustCreate(t, pods, `{"metadata":{"name":"p","namespace":"n","labels":{"tenant":"a"}}}`)
	mustCreate(t, pods, `{"metadata":{"name":"q","namespace":"n","labels":{"tenant":"b"}}}`)
	for name, wrap := range map[string]func(*store.Collection) *store.Collection{
		"memory":         func(c *store.Collection) *store.Collection { return c },
		"another Uniter": func(c *store.Collection) *store.Collection { return store.NewReadOnly(c.Spec(), c) },
	} {
		t.Run(name, func(t *testing.T) {
			pods, nodes := wrap(pods), wrap(nodes)
			epochs := make(map[string]bool)
			for _, test := range []struct {
				pods *store.Collection
				want string
			}{{pods, "pq"}, {pods.Within(tenant(t, "a")), "p"}, {pods.Within(tenant(t, "b")), "q"}} {
				u, err := nodes.Union(listwatch.Part{Source: nodes}, listwatch.Part{Source: test.pods})
				if err != nil {
					t.Fatal(err)
				}
				epochs[listwatch.Describe(u).Epoch] = true
				page, err := u.List(t.Context(), listwatch.Query{})
				if err != nil {
					t.Fatal(err)
				}
				var got string
				for _, o := range page.Items {
					got += o.Key.Name
				}
				if got != test.want {
					t.Errorf("got the objects %q, want %q", got, test.want)
				}
			}
			if len(epochs) != 3 || !epochs[listwatch.Describe(pods).Epoch] {
				t.Errorf("got the epochs %v, want three, and the epoch of the database among them", epochs)
			}
		})
	}
}

// A part cannot reach beyond the namespace of its view.
func TestUnionRefusesAnotherNamespaceThanThatOfTheView(t *testing.T) {
	pods, nodes := twoCollections(t)
	_, err := nodes.Union(listwatch.Part{
		Source:    pods.Within(listwatch.Selection{Namespace: "a"}),
		Selection: listwatch.Selection{Namespace: "b"},
	})
	wantCode(t, err, listwatch.Forbidden, "")
}

func TestUnionRefusesWhatHasNoCommonVersions(t *testing.T) {
	pods, nodes := twoCollections(t)
	other, _ := twoCollections(t)
	foreign := store.New(store.CollectionSpec{Kind: "Thing"}, &mapBackend{})
	for name, parts := range map[string][]listwatch.Part{
		"none": nil, "the same collection": {{Source: pods}, {Source: pods.Within(tenant(t, "a"))}},
		"two databases": {{Source: nodes}, {Source: other}}, "another store": {{Source: foreign}},
		"no collection": {{Source: nodes}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nodes.Union(parts...)
			wantCode(t, err, listwatch.Invalid, "")
		})
	}
}
