package collectiontest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
)

// Selections returns eight kinds of selections of the objects that [Write] creates.
func Selections(t testing.TB) (all []listwatch.Selection) {
	t.Helper()
	for _, s := range []struct{ namespace, name, labels, fields string }{
		{},
		{namespace: "a"},
		{name: "x"},
		{labels: "app=red"},
		{labels: "app!=red"},
		{labels: "app in (red,blue)"},
		{fields: "spec.node=n1"},
		{fields: "spec.node!=n1"},
	} {
		labels, err := listwatch.ParseLabelSelector(s.labels)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := listwatch.ParseFieldSelector(s.fields)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, listwatch.Selection{Namespace: s.namespace, Name: s.name, Labels: labels, Fields: fields})
	}
	return all
}

// Write creates, updates or deletes a random object of c, which has namespaces and the field
// spec.node.
func Write(t testing.TB, rng *rand.Rand, c listwatch.Store) {
	t.Helper()
	key := listwatch.Key{Namespace: pick(rng, "a", "b"), Name: pick(rng, "v", "w", "x", "y", "z")}
	var err error
	if rng.IntN(3) == 0 {
		_, err = c.Delete(t.Context(), key, listwatch.Preconditions{})
	} else {
		data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q,"labels":{"app":%q}},"spec":{"node":%q,"n":%d}}`,
			key.Name, key.Namespace, pick(rng, "red", "green", "blue"), pick(rng, "n1", "n2"), rng.Int())
		if _, err = c.Replace(t.Context(), key, data); errors.Is(err, listwatch.NotFound) {
			_, err = c.Create(t.Context(), data)
		}
	}
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		t.Fatal(err)
	}
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }

// Readers resume by differences, one reader for each of the [Selections].
type Readers struct {
	*testing.T
	readers []*reader
	// Differences and Whole count the resumes.
	Differences, Whole int
}

// A reader has the state of a selection.
type reader struct {
	selection listwatch.Selection
	has       listwatch.State
	objects   map[listwatch.Key]string
}

// NewReaders returns Readers without a state.
func NewReaders(t *testing.T) *Readers {
	r := &Readers{T: t}
	for _, s := range Selections(t) {
		r.readers = append(r.readers, &reader{selection: s})
	}
	return r
}

// Resume lets about half of the readers resume at s, and fails the test unless each of them then
// has the same state as an exact list, byte for byte.
func (r *Readers) Resume(rng *rand.Rand, s listwatch.Source) {
	r.Helper()
	for _, reader := range r.readers {
		if rng.IntN(2) == 0 {
			continue
		}
		if r.resume(reader, s) {
			r.Differences++
		} else {
			r.Whole++
		}
	}
}

func (r *Readers) resume(reader *reader, s listwatch.Source) (isDifference bool) {
	r.Helper()
	q := listwatch.Query{Selection: reader.selection}
	q.InitialEvents, q.Bookmarks, q.Since = listwatch.InitialEventsYes, true, reader.has
	w, err := s.Watch(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	defer w.Close()
	var initial []listwatch.Event
	for e, err := range listwatch.All(r.Context(), w) {
		if err != nil {
			r.Fatal(err)
		}
		if e.Type == listwatch.Synced {
			_, isDifference = e.Since()
			reader.has = e.State()
			break
		}
		initial = append(initial, e)
	}
	if !isDifference {
		reader.objects = make(map[listwatch.Key]string)
	}
	for _, e := range initial {
		if delete(reader.objects, e.Object.Key); e.Type == listwatch.Added {
			reader.objects[e.Object.Key] = string(e.Object.Data)
		}
	}
	r.compare(reader, s)
	return isDifference
}

// compare compares the state of reader with an exact list of s.
func (r *Readers) compare(reader *reader, s listwatch.Source) {
	r.Helper()
	q := listwatch.Query{Selection: reader.selection}
	q.Start, q.Version, q.Match = listwatch.StartAt, reader.has.Version, listwatch.MatchExact
	page, err := s.List(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	same := func(o *listwatch.Object) bool { return reader.objects[o.Key] == string(o.Data) }
	if i := slices.IndexFunc(page.Items, func(o *listwatch.Object) bool { return !same(o) }); i >= 0 {
		o := page.Items[i]
		r.Fatalf("the reader has %q, want %s", reader.objects[o.Key], o.Data)
	}
	if len(reader.objects) != len(page.Items) {
		r.Fatalf("the reader has %d objects at version %d, want %d", len(reader.objects), page.Version, len(page.Items))
	}
}
