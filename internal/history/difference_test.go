package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/racetest"
)

// A differenceWalk writes a random history to two replicas of a collection, and lets readers resume
// by differences. Now and then a replica begins to miss writes, until it is reset.
type differenceWalk struct {
	*rand.Rand
	mutant   differenceMutant
	epoch    int
	version  listwatch.Version
	state    map[listwatch.Key]*listwatch.Object
	replicas [2]*Log
	behind   [2]bool // replicas that have missed a write
	readers  []*differenceReader
	counts   struct{ differences, added, gone, whole int }
}

// A differenceReader follows a selection and stays away for a while between two reads.
type differenceReader struct {
	query   listwatch.Query
	state   listwatch.State
	version listwatch.Version
	objects map[listwatch.Key]string
}

// A differenceMutant changes what a Log does.
type differenceMutant struct {
	name   string
	append func(l *Log, r Record)                           // after Append
	reset  func(l *Log, before [][]departures.Departure)    // after Reset
	query  func(l *Log, q *listwatch.Query, state []string) // before Watch
	cursor func(c *Cursor)                                  // after Watch
}

var differenceMutants = []differenceMutant{
	{name: "no departures for changed attributes", append: func(l *Log, r Record) {
		if r.Old != nil && r.New != nil {
			for i := range l.state.departures.Chunks {
				l.state.departures.Chunks[i] = slices.DeleteFunc(slices.Clone(l.state.departures.Chunks[i]),
					func(d departures.Departure) bool { return d.Version == r.Version })
			}
			l.state.departures.Chunks = slices.DeleteFunc(l.state.departures.Chunks,
				func(c []departures.Departure) bool { return len(c) == 0 })
		}
	}},
	{name: "the epoch is ignored", query: func(_ *Log, q *listwatch.Query, own []string) {
		q.Since.ID = own[0] + q.Since.ID[len(own[0]):]
	}},
	{name: "the selection is ignored", query: func(_ *Log, q *listwatch.Query, own []string) {
		q.Since.ID = q.Since.ID[:len(own[0])] + own[1]
	}},
	{
		name:  "the horizon is ignored",
		query: func(l *Log, _ *listwatch.Query, _ []string) { l.state.departures.Horizon = 0 },
	},
	{name: "gaps are ignored", query: func(l *Log, _ *listwatch.Query, _ []string) { l.state.departures.Gaps = nil }},
	{
		name:  "Reset keeps no departures",
		reset: func(l *Log, before [][]departures.Departure) { l.state.departures.Chunks = before },
	},
	{name: "a departure is ignored if the key exists", cursor: func(c *Cursor) {
		s, ok := c.stage.(*snapshot)
		if !ok {
			return
		}
		for i, chunk := range s.departures {
			s.departures[i] = slices.DeleteFunc(slices.Clone(chunk), func(d departures.Departure) bool {
				_, exists := s.tree.Get(&listwatch.Object{Key: listwatch.Key{
					Namespace: d.From.Namespace(), Name: d.Name,
				}})
				return exists
			})
		}
	}},
}

func TestDifferencesLeadToTheListedState(t *testing.T) {
	t.Logf("seed %d (repeat with -seed)", *seed)
	var sum differenceWalk
	for i := range racetest.Rounds(40) {
		w := newDifferenceWalk(*seed, uint64(i), differenceMutant{})
		if err := w.run(1500); err != nil {
			t.Fatalf("history %d: %v", i, err)
		}
		sum.counts.differences += w.counts.differences
		sum.counts.added += w.counts.added
		sum.counts.gone += w.counts.gone
		sum.counts.whole += w.counts.whole
	}
	t.Logf("%+v", sum.counts)
	// A history of 1500 steps has about 250 differences and 140 whole states.
	if c, r := sum.counts, racetest.Rounds; c.differences < r(1000) || c.gone < r(1000) || c.whole < r(100) {
		t.Errorf("the histories covered too little: %+v", c)
	}
}

// TestDifferenceMutantsFail shows that the random histories find each defect. A single history
// misses a mutant with a probability of at most 0.55, and all 40 with 10^-10.
func TestDifferenceMutantsFail(t *testing.T) {
	for _, m := range differenceMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Logf("seed %d (repeat with -seed)", *seed)
			for i := range 40 {
				if err := newDifferenceWalk(*seed, uint64(i), m).run(1500); err != nil {
					t.Logf("history %d: %v", i, err)
					return
				}
			}
			t.Error("the mutant was not found")
		})
	}
}

func newDifferenceWalk(seed, n uint64, m differenceMutant) *differenceWalk {
	w := &differenceWalk{Rand: rand.New(rand.NewPCG(seed, n)), mutant: m, version: 1}
	for _, selection := range []struct {
		namespace, name string
		labels, fields  string
	}{
		{},
		{namespace: "a"},
		{labels: "app=red"},
		{labels: "app!=red"},
		{labels: "app in (red,blue)"},
		{fields: "spec.node=n1"},
		{fields: "spec.node!=n1"},
		{name: "x"},
	} {
		q := listwatch.Query{Selection: listwatch.Selection{Namespace: selection.namespace, Name: selection.name}}
		q.Labels, _ = listwatch.ParseLabelSelector(selection.labels)
		q.Fields, _ = listwatch.ParseFieldSelector(selection.fields)
		w.readers = append(w.readers, &differenceReader{query: q})
	}
	w.startOver()
	return w
}

// startOver begins a new epoch, whose versions overlap with those of the previous one.
func (w *differenceWalk) startOver() {
	w.epoch++
	w.version -= min(w.version-1, listwatch.Version(w.IntN(20)))
	w.state = map[listwatch.Key]*listwatch.Object{}
	for i := range w.replicas {
		w.restart(i)
	}
}

func (w *differenceWalk) objects() (all []*listwatch.Object) {
	for _, o := range w.state {
		all = append(all, o)
	}
	return all
}

// restart replaces a replica with a new process, which has the state and no departures.
func (w *differenceWalk) restart(i int) {
	retention := listwatch.Retention{}
	if w.IntN(3) == 0 {
		retention.SinceBytes = 1 // one chunk
	}
	l, err := Restore(Options{
		Retention: retention,
		Description: listwatch.Description{
			Kind: "Thing", APIVersion: "v1", Epoch: fmt.Sprint("epoch", w.epoch),
			Fields: []string{"spec.node"},
		},
	}, SavedLog{Objects: w.objects(), Floor: w.version})
	if err != nil {
		panic(err)
	}
	w.replicas[i], w.behind[i] = l, false
}

func (w *differenceWalk) run(steps int) error {
	for range steps {
		switch n := w.IntN(100); {
		case n < 60:
			w.write()
		case n < 70:
			w.catchUp(w.IntN(len(w.replicas)))
		case n < 72:
			w.replicas[w.IntN(len(w.replicas))].Compact()
		case n < 73:
			if w.IntN(4) == 0 {
				w.restart(w.IntN(len(w.replicas)))
			} else if w.IntN(8) == 0 {
				w.startOver()
			}
		case n < 74: // an endpoint restricts its user to other objects
			a, b := w.readers[w.IntN(len(w.readers))], w.readers[w.IntN(len(w.readers))]
			a.query, b.query = b.query, a.query
		default:
			i, r := w.IntN(len(w.replicas)), w.readers[w.IntN(len(w.readers))]
			if err := w.read(w.replicas[i], r); err != nil {
				return fmt.Errorf("%+v: %w", r.query, err)
			}
		}
	}
	return nil
}

func (w *differenceWalk) write() {
	w.version += listwatch.Version(1 + w.IntN(2))
	key := listwatch.Key{Namespace: []string{"a", "b"}[w.IntN(2)], Name: []string{"w", "x", "y", "z"}[w.IntN(4)]}
	r := Record{Version: w.version, Old: w.state[key]}
	app, node := []string{"red", "green", "blue"}[w.IntN(3)], []string{"n1", "n2"}[w.IntN(2)]
	if r.Old != nil && w.IntN(2) == 0 {
		app, node = r.Old.Labels["app"], r.Old.Fields["spec.node"]
	}
	if delete(w.state, key); r.Old == nil || w.IntN(3) > 0 {
		r.New = thing(key, w.version, map[string]string{"app": app}, node)
		w.state[key] = r.New
	}
	for i, l := range w.replicas {
		if w.behind[i] = w.behind[i] || w.IntN(20) == 0; !w.behind[i] {
			if l.Append(r); w.mutant.append != nil {
				w.mutant.append(l, r)
			}
		}
	}
}

// catchUp resets a replica that has missed writes.
func (w *differenceWalk) catchUp(i int) {
	if !w.behind[i] {
		return
	}
	w.behind[i] = false
	l := w.replicas[i]
	before := slices.Clone(l.state.departures.Chunks)
	if l.Reset(w.objects(), w.version); w.mutant.reset != nil {
		w.mutant.reset(l, before)
	}
}

// read lets r resume and follow l for a few events, and compares its state with a list.
func (w *differenceWalk) read(l *Log, r *differenceReader) error {
	q := r.query
	q.InitialEvents, q.Bookmarks = listwatch.InitialEventsYes, true
	if q.Since = r.state; r.version > 0 && r.version <= l.version() && w.IntN(4) == 0 {
		q.Start, q.Version = listwatch.StartAt, r.version
		// The state is newer than the reader claims.
		q.Since.Version = max(1, r.version-listwatch.Version(w.IntN(8)))
	}
	if w.mutant.query != nil && q.Since.ID != "" {
		f := newFeed(l, newSelection(q.Selection), q.Key(), 0)
		epoch := l.description.Epoch
		w.mutant.query(l, &q, []string{epoch, f.stateID[len(epoch):]})
	}
	watcher, err := l.Watch(context.Background(), q)
	if err != nil {
		return err
	}
	c := watcher.(*Cursor)
	defer c.Close()
	if w.mutant.cursor != nil {
		w.mutant.cursor(c)
	}
	initial, synced, err := readInitial(c)
	if err != nil {
		return err
	}
	since, isDifference := synced.Since()
	switch {
	case isDifference && since != q.Since.Version:
		return fmt.Errorf("difference since %d, want %d", since, q.Since.Version)
	case isDifference:
		w.counts.differences++
	default:
		w.counts.whole++
		r.objects = map[listwatch.Key]string{}
	}
	for _, e := range initial {
		if e.Type == listwatch.Deleted {
			if !isDifference {
				return fmt.Errorf("a whole state has DELETED %v", e.Object.Key)
			}
			w.counts.gone++
			delete(r.objects, e.Object.Key)
			continue
		}
		w.counts.added++
		r.objects[e.Object.Key] = string(e.Object.Data)
	}
	r.version, r.state = synced.Version, synced.State()
	return r.compare(l)
}

// readInitial returns the initial events and the Synced event after them.
func readInitial(c *Cursor) (initial []listwatch.Event, synced listwatch.Event, err error) {
	var batch [3]listwatch.Event
	for {
		n, err := c.Next(context.Background(), batch[:])
		if err != nil {
			return nil, synced, err
		}
		for _, e := range batch[:n] {
			if e.Type == listwatch.Synced {
				return initial, e, nil
			}
			if !e.Initial {
				return nil, synced, errors.New("an event before Synced is not an initial event")
			}
			initial = append(initial, e)
		}
	}
}

// compare returns an error unless r has the listed state of its selection, byte for byte.
func (r *differenceReader) compare(l *Log) error {
	q := r.query
	q.Start, q.Version, q.Match = listwatch.StartAt, r.version, listwatch.MatchExact
	page, err := l.List(context.Background(), q)
	if err != nil {
		return err
	}
	have := make([]listwatch.Key, 0, len(r.objects))
	for key := range r.objects {
		have = append(have, key)
	}
	slices.SortFunc(have, listwatch.Key.Compare)
	for i := range max(len(have), len(page.Items)) {
		var want, got string
		if i < len(page.Items) {
			want = string(page.Items[i].Data)
		}
		if i < len(have) {
			got = r.objects[have[i]]
		}
		if got != want {
			return fmt.Errorf("at version %d object %d is %s, want %s", r.version, i, cmp.Or(got, "missing"),
				cmp.Or(want, "none"))
		}
	}
	return nil
}
