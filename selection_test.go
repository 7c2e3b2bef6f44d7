package listwatch_test

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

// someSelections returns different selections.
func someSelections(t testing.TB) []listwatch.Selection {
	return []listwatch.Selection{
		{},
		{Namespace: "a"},
		{Name: "a"},
		{Namespace: "a", Name: "b"},
		{Namespace: `a" name="b`}, // must not look like the selection before
		{Namespace: "b", Name: "a"},
		{Labels: testkit.Labels(t, "a")},
		{Labels: testkit.Labels(t, "app=web")},
		{Fields: testkit.Fields(t, "app=web")},
		{Namespace: "a", Labels: testkit.Labels(t, "app=web")},
		{Projection: testkit.Projection(t, "spec")},
		{Namespace: "a", Projection: testkit.Projection(t, "spec")},
	}
}

func TestSelectionKeysDiffer(t *testing.T) {
	keys := map[string]listwatch.Selection{}
	for _, s := range someSelections(t) {
		if other, ok := keys[s.Key()]; ok {
			t.Errorf("%+v and %+v have the same key %q", s, other, s.Key())
		}
		keys[s.Key()] = s
	}
	if key := (listwatch.Selection{}).Key(); key != "" {
		t.Errorf("zero Selection: got key %q, want an empty key", key)
	}
}

func TestSelectionKeyUsesCanonicalForms(t *testing.T) {
	one := listwatch.Selection{Labels: testkit.Labels(t, "a=b,c"), Projection: testkit.Projection(t, "spec,metadata")}
	two := listwatch.Selection{
		Labels:     testkit.Labels(t, " c, a==b"),
		Projection: testkit.Projection(t, "metadata,spec,spec.a"),
	}
	if one.Key() != two.Key() {
		t.Errorf("got keys %q and %q, want one", one.Key(), two.Key())
	}
	if want := `labels="a=b,c" shows="metadata,spec"`; one.Key() != want {
		t.Errorf("got key %q, want %q", one.Key(), want)
	}
}

func TestSelectionAndSelectsWhatBothSelect(t *testing.T) {
	var objects []*listwatch.Object
	for _, namespace := range []string{"", "a", "b"} {
		for _, name := range []string{"a", "b"} {
			for _, app := range []string{"web", "db"} {
				objects = append(objects, &listwatch.Object{
					Key: listwatch.Key{Namespace: namespace, Name: name}, Labels: map[string]string{"app": app},
					Fields: map[string]string{"app": app},
				})
			}
		}
	}
	for _, s := range someSelections(t) {
		for _, other := range someSelections(t) {
			both := s.And(other)
			for _, o := range objects {
				if got, want := both.Matches(o), s.Matches(o) && other.Matches(o); got != want {
					t.Errorf("%q and %q: %v selected: got %v, want %v", s.Key(), other.Key(), o.Key, got, want)
				}
			}
		}
	}
}

func TestSelectionAndPrefersTheSecondProjection(t *testing.T) {
	spec := listwatch.Selection{Projection: testkit.Projection(t, "spec")}
	status := listwatch.Selection{Projection: testkit.Projection(t, "status")}
	for want, got := range map[string]listwatch.Selection{
		"status": spec.And(status), "spec": spec.And(listwatch.Selection{}),
	} {
		if got.Projection.String() != want {
			t.Errorf("got projection %q, want %q", got.Projection, want)
		}
	}
}

func TestSelectionEffectDependsOnWhatWasSelected(t *testing.T) {
	object := func(app, spec string) *listwatch.Object {
		return &listwatch.Object{
			Key: listwatch.Key{Name: "a"}, Labels: map[string]string{"app": app},
			Data: fmt.Appendf(nil, `{"metadata":{"name":"a"},"spec":%q,"status":%q}`, spec, app),
		}
	}
	s := listwatch.Selection{Labels: testkit.Labels(t, "app in (web,db)"), Projection: testkit.Projection(t, "spec")}
	for name, test := range map[string]struct {
		before, after *listwatch.Object
		want          listwatch.EventType
	}{
		"create":           {nil, object("web", "1"), listwatch.Added},
		"begin to match":   {object("x", "1"), object("web", "1"), listwatch.Added},
		"update":           {object("web", "1"), object("web", "2"), listwatch.Modified},
		"hidden update":    {object("web", "1"), object("db", "1"), 0},
		"stop to match":    {object("web", "1"), object("x", "1"), listwatch.Deleted},
		"delete":           {object("web", "1"), nil, listwatch.Deleted},
		"another object":   {object("x", "1"), object("y", "1"), 0},
		"another is gone":  {object("x", "1"), nil, 0},
		"another is new":   {nil, object("x", "1"), 0},
		"no object at all": {nil, nil, 0},
	} {
		if got := s.Effect(test.before, test.after); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
