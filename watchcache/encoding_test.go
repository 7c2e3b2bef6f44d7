package watchcache_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/encodingtest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/watchcache"
)

func TestCacheKeepsTheEncoding(t *testing.T) {
	object := func(v listwatch.Version, color string) *listwatch.Object {
		data := `{"metadata":{"name":"a"},"spec":{"color":"` + color + `"}}`
		return encodingtest.Object(testkit.Must(listwatch.NewObject([]byte(data), v, nil))(t))
	}
	d := things
	d.Encoding = encodingtest.Encoding{}
	var group watchcache.Group
	cache := group.Cache(d, watchcache.Options{})
	if err := group.Replace(5, map[*watchcache.Cache][]*listwatch.Object{cache: {object(5, "red")}}); err != nil {
		t.Fatal(err)
	}
	q := listwatch.Query{InitialEvents: listwatch.InitialEventsNo}
	q.Fields = testkit.Fields(t, "spec.color=red")
	w := testkit.Watch(t, cache, q)
	change := watchcache.Change{Object: object(8, "blue")}
	if err := group.Skip(8, map[*watchcache.Cache][]watchcache.Change{cache: {change}}); err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"name":"a","resourceVersion":"6"},"spec":{"color":"red"}}`
	if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Deleted || encodingtest.Text(e.Object) != want {
		t.Errorf("got %v of %s, want DELETED of %s", e.Type, encodingtest.Text(e.Object), want)
	}
	const now = `{"metadata":{"name":"a","resourceVersion":"6"},"spec":{"color":"blue"}}`
	if o := cache.Lookup(listwatch.Key{Name: "a"}); encodingtest.Text(o) != now || o.Fields["spec.color"] != "blue" {
		t.Errorf("got %s with %v, want %s", encodingtest.Text(o), o.Fields, now)
	}
	_, err := cache.Union(listwatch.Part{Source: cache})
	if listwatch.CodeOf(err) != listwatch.Unsupported {
		t.Errorf("union: got %v, want Unsupported", err)
	}
	projection := listwatch.Selection{Projection: testkit.Projection(t, "spec")}
	_, err = cache.List(t.Context(), listwatch.Query{Selection: projection})
	if listwatch.CodeOf(err) != listwatch.Unsupported {
		t.Errorf("projection: got %v, want Unsupported", err)
	}
}
