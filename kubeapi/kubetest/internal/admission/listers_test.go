package admission

import (
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// Concurrent writers of one object report their writes in any order.
func TestLateReportsOfWritesAreIgnored(t *testing.T) {
	var s validatingSet
	key := listwatch.Key{Name: "a"}
	report := func(v listwatch.Version, deleted bool, label string) {
		data := []byte(`{"metadata":{"name":"a","labels":{"v":"` + label + `"}}}`)
		if err := s.changed(&listwatch.Object{Key: key, Version: v, Data: data}, deleted); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range s.all() {
			got = append(got, c.Labels["v"])
		}
		if !slices.Equal(got, want) {
			t.Errorf("got the labels %q, want %q", got, want)
		}
	}
	report(2, false, "second")
	report(1, false, "first")
	want("second")
	report(4, true, "second")
	report(3, false, "third")
	want()
	report(5, false, "fifth")
	want("fifth")
}

func TestPluginsSeeTheUser(t *testing.T) {
	ctx := watchserver.WithUser(t.Context(), watchserver.User{Name: "ann", UID: "7", Groups: []string{"staff"}})
	if u := userOf(ctx); u.GetName() != "ann" || u.GetUID() != "7" || len(u.GetGroups()) != 1 {
		t.Errorf("got %+v", u)
	}
}
