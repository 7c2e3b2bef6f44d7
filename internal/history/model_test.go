package history

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/encodingtest"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/sharedmaps"
	"github.com/listwatch/listwatch/internal/testkit"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random tests")

// model is the specification of a Log. It keeps all records and computes the events of a
// selection from them.
type model struct {
	records []Record
}

type seen struct {
	kind    listwatch.EventType
	key     listwatch.Key
	version listwatch.Version
	data    string
}

// expectedEvent returns the event that a watcher of s receives. ok is false if it receives
// none.
func expectedEvent(r Record, s selection) (e seen, ok bool) {
	before, now := s.Matches(r.Old), s.Matches(r.New)
	switch {
	case before && now && shownThing(r.Old, 0, s) == shownThing(r.New, 0, s):
	case before && now:
		return seen{listwatch.Modified, r.New.Key, r.Version, shownThing(r.New, r.Version, s)}, true
	case now:
		return seen{listwatch.Added, r.New.Key, r.Version, shownThing(r.New, r.Version, s)}, true
	case before:
		return seen{listwatch.Deleted, r.Old.Key, r.Version, shownThing(r.Old, r.Version, s)}, true
	}
	return seen{}, false
}

// things are the formats of the reduced forms of a thing, by projection.
var things = map[string]string{
	"": `,"spec":{"node":%q,"app":%q}`, "absent": "", "spec.node": `,"spec":{"node":%q}`,
	"-spec.app": `,"spec":{"node":%q}`,
	"spec.app":  `,"spec":{"app":%[2]q}`, "spec": `,"spec":{"node":%q,"app":%q}`, "-spec": "",
}

// shownThing returns the JSON of o, a thing, at the version v, as a watcher of s sees it. A watcher
// of whole objects sees each write.
func shownThing(o *listwatch.Object, v listwatch.Version, s selection) string {
	if v == 0 && s.Projection.Empty() {
		v = o.Version
	}
	kind, _, _ := strings.Cut(encodingtest.Text(o), ",")
	metadata := fmt.Sprintf(`%s,"metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d"}`, kind, o.Key.Name,
		o.Key.Namespace, v)
	spec, _, _ := strings.Cut(fmt.Sprintf(things[s.Projection.String()], o.Fields["spec.node"], o.Labels["app"]),
		"%!(EXTRA")
	return metadata + spec + "}"
}

// after returns the index of the first record with a version greater than v.
func (m *model) after(v listwatch.Version) int {
	i := len(m.records)
	for i > 0 && m.records[i-1].Version > v {
		i--
	}
	return i
}

func (m *model) state(s selection, at listwatch.Version) []seen {
	state := make(map[listwatch.Key]*listwatch.Object)
	for _, c := range m.records {
		if c.Version > at {
			break
		}
		if delete(state, c.object().Key); c.New != nil {
			state[c.New.Key] = c.New
		}
	}
	var out []seen
	for _, o := range state {
		if s.Matches(o) {
			out = append(out, seen{listwatch.Added, o.Key, o.Version, shownThing(o, o.Version, s)})
		}
	}
	slices.SortFunc(out, func(a, b seen) int { return a.key.Compare(b.key) })
	return out
}

// walker is a watcher of the random walk.
type walker struct {
	*Cursor
	selection selection
	want      []seen // expected events that the watcher has not received yet
	initial   int    // number of initial events in want, including the bookmark
	scanned   int    // number of records of the model whose events were added to want
}

// expectNewRecords adds the events of the records written since the last call to the
// expected events.
func (w *walker) expectNewRecords(m *model) {
	for ; w.scanned < len(m.records); w.scanned++ {
		if e, ok := expectedEvent(m.records[w.scanned], w.selection); ok {
			w.want = append(w.want, e)
		}
	}
}

// walk performs random operations on a Log and its watchers, and compares each result with
// the model.
type walk struct {
	*testing.T
	*rand.Rand
	log     *Log
	model   model
	version listwatch.Version
	walkers []*walker
	encoded bool // the objects are not JSON
	expired int  // watchers and lists that expired
	replays int  // watchers that started at an earlier version
}

func TestRandomWalkMatchesTheModel(t *testing.T) {
	t.Logf("seed %d (repeat with -seed)", *seed)
	for i := range max(racetest.Rounds(8), 2) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := &walk{T: t, Rand: rand.New(rand.NewPCG(*seed, uint64(i))), encoded: i%2 == 1}
			d := listwatch.Description{Kind: "Thing", APIVersion: "v1", Fields: []string{"spec.node"}}
			if w.encoded {
				d.Encoding = encodingtest.Encoding{}
			}
			w.log = New(Options{
				Retention: listwatch.Retention{
					Bytes:           int64(20+w.IntN(200)) * 1024,
					FrameCacheBytes: 4096,
				},
				Description: d,
			})
			w.log.feeds.limits = w.feedLimits()
			for range 10 {
				w.write()
			}
			for range 4000 {
				w.step()
			}
			w.checkReductions()
			w.restart() // every run restarts at least once
			for range 400 {
				w.step()
			}
			if w.expired == 0 || w.replays == 0 {
				t.Errorf("the walk covered too little: %d expiries, %d replays", w.expired, w.replays)
			}
		})
	}
}

// feedLimits returns limits that are often reached.
func (w *walk) feedLimits() feedLimits {
	return feedLimits{nodesPerFeed: 1 + w.IntN(20), nodesPerRecord: w.IntN(9), feedsPerTerm: w.IntN(3), idle: w.IntN(4)}
}

func (w *walk) step() {
	switch n := w.IntN(100); {
	case n < 40:
		w.write()
	case n < 50:
		w.watch()
	case n < 85:
		w.read()
	case n < 90:
		w.list()
	case n < 92:
		w.close()
	case w.IntN(100) == 0:
		w.log.Compact()
	case w.IntN(100) == 0:
		w.restart()
	}
}

func (w *walk) write() {
	w.version += listwatch.Version(1 + w.IntN(3))
	var group []Record
	for range 1 + w.IntN(20)/18 + w.IntN(20)/19 {
		key := listwatch.Key{Namespace: pick(w, "a", "b", "c"), Name: pick(w, "v", "x", "y", "z")}
		if slices.ContainsFunc(group, func(c Record) bool { return c.object().Key == key }) {
			continue
		}
		c := Record{Version: w.version, Old: w.log.Get(key)}
		if c.Old == nil || w.IntN(4) > 0 {
			c.New = thing(key, w.version,
				map[string]string{"app": pick(w, "red", "green", "blue"), "tier": pick(w, "1", "2")},
				pick(w, "n1", "n2"))
			if w.encoded {
				c.New = encodingtest.Object(c.New)
			}
		}
		group = append(group, c)
	}
	slices.SortFunc(group, func(a, b Record) int { return a.object().Key.Compare(b.object().Key) })
	w.log.Append(group...)
	w.model.records = append(w.model.records, group...)
}

func thing(key listwatch.Key, v listwatch.Version, labels map[string]string, node string) *listwatch.Object {
	data := fmt.Appendf(nil,
		`{"kind":"Thing","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d"},"spec":{"node":%q,"app":%q}}`,
		key.Name, key.Namespace, v, node, labels["app"])
	return &listwatch.Object{
		Key: key, Version: v, Labels: labels, Fields: map[string]string{"spec.node": node},
		Data: data,
	}
}

func pick(w *walk, of ...string) string { return of[w.IntN(len(of))] }

func (w *walk) query() listwatch.Query {
	q := listwatch.Query{
		Selection: listwatch.Selection{Namespace: pick(w, "", "", "a", "b"), Name: pick(w, "", "", "", "x")},
	}
	var err error
	if q.Labels, err = listwatch.ParseLabelSelector(pick(w, "", "", "app=red", "app in (red,blue)", "app!=red",
		"tier=1,app=green", "!none")); err != nil {
		w.Fatal(err)
	}
	if q.Fields, err = listwatch.ParseFieldSelector(pick(w, "", "", "", "spec.node=n1", "spec.node!=n1",
		"metadata.name=y", "metadata.namespace=c")); err != nil {
		w.Fatal(err)
	}
	if !w.encoded && w.IntN(2) == 0 {
		q.Projection = testkit.Projection(w, pick(w, slices.Sorted(maps.Keys(things))...))
	}
	return q
}

// someVersion usually returns a retained version, and sometimes a slightly older one.
func (w *walk) someVersion(s listwatch.Stats) listwatch.Version {
	back := listwatch.Version(w.IntN(int(s.Newest-s.Oldest) + 8))
	return s.Newest - min(back, s.Newest)
}

func (w *walk) watch() {
	q, stats := w.query(), w.log.Stats()
	q.Bookmarks = w.IntN(2) == 0
	q.Start = listwatch.Start(w.IntN(3))
	if q.Start == listwatch.StartAt {
		q.Version = w.someVersion(stats)
	}
	if w.IntN(3) == 0 {
		q.InitialEvents = listwatch.InitialEvents(w.IntN(3))
	}
	c, err := w.log.Watch(context.Background(), q)
	if tooOld := q.Start == listwatch.StartAt && !q.SendsInitialEvents() && q.Version < stats.Oldest; tooOld ||
		err != nil {
		if !tooOld || !errors.Is(err, listwatch.Expired) {
			w.Fatalf("watch from %d with floor %d, too old %t: got %v", q.Version, stats.Oldest, tooOld, err)
		}
		w.expired++
		return
	}
	r := &walker{Cursor: c.(*Cursor), selection: newSelection(q.Selection), scanned: len(w.model.records)}
	if q.SendsInitialEvents() {
		r.want = w.model.state(r.selection, stats.Newest)
		if q.Bookmarks {
			r.want = append(r.want, seen{kind: listwatch.Synced, version: stats.Newest})
		}
		r.initial = len(r.want)
	} else if q.Start == listwatch.StartAt {
		r.scanned = w.model.after(q.Version)
		w.replays++
	}
	w.walkers = append(w.walkers, r)
}

func (w *walk) read() {
	if len(w.walkers) == 0 {
		return
	}
	i := w.IntN(len(w.walkers))
	r := w.walkers[i]
	r.expectNewRecords(&w.model)
	batch := make([]listwatch.Event, 1+w.IntN(20))
	n, err := r.Poll(batch)
	for n == 0 && err == nil && r.Progress().More && len(r.want) > 0 { // it compares few objects
		n, err = r.Poll(batch)
	}
	if err != nil {
		floor := w.log.Stats().Oldest
		// A cursor that reads the log cannot know whether a dropped record concerned its
		// selection, so it expires in any case.
		old, isOld := r.stage.(*failed).stage.(*backlog)
		overtaken := isOld && old.next < w.log.records.first()
		if !errors.Is(err, listwatch.Expired) || r.initial > 0 ||
			!overtaken && (len(r.want) == 0 || r.want[0].version > floor) {
			w.Fatalf("poll: %v with floor %d, overtaken %t, %d initial events and %+v still to come",
				err, floor, overtaken, r.initial, r.want)
		}
		w.expired++
		w.drop(i)
		return
	}
	if n == 0 && len(r.want) > 0 {
		w.Fatalf("poll returned nothing, want %+v", r.want)
	}
	for _, e := range batch[:n] {
		got := seen{e.Type, e.Object.Key, e.Version, encodingtest.Text(e.Object)}
		if e.Type == listwatch.Synced {
			got.data = ""
		}
		if len(r.want) == 0 || got != r.want[0] || e.Initial != (r.initial > 0 && e.Type == listwatch.Added) {
			w.Fatalf("got %+v, want the first of %+v", got, r.want)
		}
		r.want = r.want[1:]
		r.initial = max(r.initial-1, 0)
	}
	w.checkPosition(r)
}

func (w *walk) checkPosition(r *walker) {
	p := r.Progress().Version
	switch {
	case r.initial > 0:
		if p != 0 {
			w.Fatalf("position %d within the initial events, want 0", p)
		}
	case len(r.want) > 0:
		if p >= r.want[0].version {
			w.Fatalf("position %d, but %+v is still to come", p, r.want[0])
		}
	case r.stage == r.last && p != w.version:
		w.Fatalf("position %d with nothing to come, want the newest version %d", p, w.version)
	}
}

// list reads a list in pages, with writes between the pages. It lists either the newest
// state or a retained version.
func (w *walk) list() {
	q, stats := w.query(), w.log.Stats()
	at := stats.Newest
	if w.IntN(2) == 0 {
		q.Start, q.Match, q.Version = listwatch.StartAt, listwatch.MatchExact, max(w.someVersion(stats), 1)
		at = q.Version
	}
	q.Limit = w.IntN(4)
	s := newSelection(q.Selection)
	want := w.model.state(s, at)
	for {
		p, err := w.log.List(context.Background(), q)
		if err != nil {
			if floor := w.log.Stats().Oldest; !errors.Is(err, listwatch.Expired) || at >= floor {
				w.Fatalf("list at %d with floor %d: %v", at, floor, err)
			}
			w.expired++
			return
		}
		for _, o := range p.Items {
			got := seen{listwatch.Added, o.Key, o.Version, encodingtest.Text(o)}
			if len(want) == 0 || got != want[0] {
				w.Fatalf("list at %d: got %+v, want the first of %+v", at, got, want)
			}
			want = want[1:]
		}
		// With selectors, a full page has a continue token even if none of the objects that follow
		// is selected.
		full := q.Limit > 0 && len(p.Items) == q.Limit
		ends := p.Continue == "" || s.isSelective() && full
		if p.Remaining >= 0 && p.Remaining != len(want) || len(want) == 0 && !ends ||
			len(want) > 0 && p.Continue == "" || p.Version != at {
			w.Fatalf("page at %d says %d remain and continues %q, want %d at %d", p.Version, p.Remaining, p.Continue,
				len(want), at)
		}
		if p.Continue == "" {
			return
		}
		w.write()
		q = listwatch.Query{Selection: q.Selection, Limit: q.Limit, Continue: p.Continue}
	}
}

func (w *walk) close() {
	if len(w.walkers) > 0 {
		w.drop(w.IntN(len(w.walkers)))
	}
}

func (w *walk) drop(i int) {
	if err := w.walkers[i].Close(); err != nil {
		w.Fatal(err)
	}
	w.walkers = slices.Delete(w.walkers, i, i+1)
}

// checkObjectBytes compares the counted bytes of the current objects with their sum.
func (w *walk) checkObjectBytes() {
	w.Helper()
	var want int64
	shared := sharedmaps.New()
	w.log.state.tree.Scan(func(o *listwatch.Object) bool {
		want += int64(len(o.Data))
		shared.Exchange(nil, o)
		return true
	})
	if got := w.log.state.shared; got.Bytes != shared.Bytes || got.Len() != shared.Len() {
		w.Fatalf("%d bytes in %d maps of labels and fields are counted, want %d in %d", got.Bytes, got.Len(),
			shared.Bytes, shared.Len())
	}
	if got := w.log.Stats().ObjectBytes; got != want {
		w.Fatalf("Stats counts %d bytes of objects, want %d", got, want)
	}
}
