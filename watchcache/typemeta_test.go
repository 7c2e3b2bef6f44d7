package watchcache_test

import (
	"encoding/json"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

func TestObjectsGetTheDescribedType(t *testing.T) {
	for verbatim, want := range map[bool]string{false: `{"kind":"Thing","apiVersion":"example.com/v1",`, true: `{`} {
		f := open(t, watchcache.Options{Verbatim: verbatim})
		f.apply(put("c", "red", 11))
		page, err := f.List(t.Context(), listwatch.Query{})
		f.ok(err)
		for _, o := range page.Items {
			rest := string(thing(o.Key.Name, o.Labels["color"], o.Version).Data)[1:]
			if string(o.Data) != want+rest {
				t.Errorf("verbatim %v: got %s, want %s%s", verbatim, o.Data, want, rest)
			}
		}
		if len(page.Items) != 3 {
			t.Errorf("got %d objects, want 3", len(page.Items))
		}
	}
}

// The cache keeps the kind and apiVersion of an object, even if the description has others.
func TestTypeOfTheOwnerIsKept(t *testing.T) {
	f := open(t, watchcache.Options{})
	o,
		err := listwatch.ParseObject(
		[]byte(`{"apiVersion":"other/v2","metadata":{"name":"c","resourceVersion":"11"},"kind":"Other"}`))
	f.ok(err)
	f.apply(watchcache.Change{Object: o})
	if got := f.Lookup(o.Key); !json.Valid(got.Data) || string(got.Data) != string(o.Data) {
		t.Errorf("got %s, want %s", got.Data, o.Data)
	}
}
