package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/testkit"
)

const unionParts = 3

// A unionWalk is a random history of several logs, and of unions that watch them.
type unionWalk struct {
	*testing.T
	*rand.Rand
	revision *revision.Revision
	logs     []*Log
	models   [unionParts]model
	last     listwatch.Version
	readers  []*unionReader

	counts unionCounts
}

// unionCounts are the numbers of checks.
type unionCounts struct{ positions, prefixes, snapshots, expired, differences, whole, skipped int }

func (c *unionCounts) add(d unionCounts) {
	c.positions, c.prefixes, c.snapshots = c.positions+d.positions, c.prefixes+d.prefixes, c.snapshots+d.snapshots
	c.expired, c.differences, c.whole = c.expired+d.expired, c.differences+d.differences, c.whole+d.whole
	c.skipped += d.skipped
}

// A unionReader is a watcher of a union, with the states of the parts as it has received them.
type unionReader struct {
	listwatch.Poller
	parts  []Part
	states [unionParts]map[listwatch.Key]string
	synced bool
	last   listwatch.Version // the version of the newest event

	// since is the version of the state held, which the reader had before. It is zero if the reader
	// had none.
	since listwatch.Version
	held  [unionParts]map[listwatch.Key]string
	gone  [unionParts]map[listwatch.Key]bool // the keys that a difference has deleted
}

// The reader has the state of all logs at every position, before every event, and after every
// snapshot, also if writes of one version to several logs are only partly appended, or if the
// revision lags behind.
func TestUnionHasAllLogsAtOneVersion(t *testing.T) {
	t.Logf("seed %d (repeat with -seed)", *seed)
	histories := racetest.Rounds(1000)
	if testing.Short() {
		histories = 300
	}
	var sum unionCounts
	for i := range histories {
		w := newUnionWalk(t, *seed, uint64(i))
		for range 60 {
			w.step()
		}
		w.finish()
		sum.add(w.counts)
	}
	t.Logf("%+v", sum)
	// 300 histories have about 11,000 positions, 400 differences, 60 whole states in place of one,
	// and 400 skipped events.
	if min(sum.positions/10, sum.snapshots, sum.expired*10, sum.differences, sum.whole*10, sum.skipped) < histories/6 {
		t.Error("the histories covered too little")
	}
}

func newUnionWalk(t *testing.T, seed, n uint64) *unionWalk {
	w := &unionWalk{T: t, Rand: rand.New(rand.NewPCG(seed, n)), revision: new(revision.Revision), last: 1}
	w.revision.Advance(1)
	for i := range unionParts {
		w.logs = append(w.logs, New(Options{
			Revision:  w.revision,
			Retention: listwatch.Retention{Bytes: int64(4+w.IntN(60)) * 1024, FrameCacheBytes: 1024},
			Description: listwatch.Description{
				Kind: fmt.Sprint("Kind", i), APIVersion: "v1",
				Fields: []string{"spec.node"},
			},
		}))
		w.logs[i].feeds.limits = feedLimits{
			nodesPerFeed: 1 + w.IntN(20), nodesPerRecord: w.IntN(9),
			feedsPerTerm: w.IntN(3), idle: w.IntN(4),
		}
	}
	return w
}

func (w *unionWalk) step() {
	switch n := w.IntN(20); {
	case n < 10:
		w.transaction()
	case n < 12:
		w.watch()
	case n < 13:
		w.list()
	case n < 14 && len(w.readers) > 0:
		w.resume(w.readers[w.IntN(len(w.readers))])
	case n < 15 && len(w.readers) > 0:
		w.difference(w.readers[w.IntN(len(w.readers))])
	case n < 16 && w.IntN(2) == 0:
		w.forget(w.logs[w.IntN(unionParts)])
	default:
		w.read()
	}
}

// transaction writes objects of some logs at one version. Readers read in the middle of it.
func (w *unionWalk) transaction() {
	w.last++
	for _, i := range w.Perm(unionParts)[:1+w.IntN(20)/14+w.IntN(20)/17] {
		key := func() listwatch.Key {
			return listwatch.Key{Namespace: []string{"a", "b"}[w.IntN(2)], Name: []string{"x", "y", "z"}[w.IntN(3)]}
		}
		keys := map[listwatch.Key]bool{key(): true}
		if w.IntN(5) == 0 {
			keys[key()] = true
		}
		var group []Record
		for _, k := range slices.SortedFunc(maps.Keys(keys), listwatch.Key.Compare) {
			r := Record{Version: w.last, Old: w.logs[i].Get(k)}
			if r.Old == nil || w.IntN(4) > 0 {
				r.New = thing(k, w.last, map[string]string{"app": []string{"red", "green"}[w.IntN(2)]}, "n1")
				r.New.Data = bytes.Replace(r.New.Data, []byte("Thing"), []byte(w.logs[i].Describe().Kind), 1)
			}
			group = append(group, r)
		}
		w.logs[i].Append(group...)
		w.models[i].records = append(w.models[i].records, group...)
		if w.IntN(2) == 0 {
			w.read()
		}
	}
	if w.IntN(4) > 0 {
		w.revision.Advance(w.last)
	}
}

// someParts returns some of the logs in any order, each with any selection.
func (w *unionWalk) someParts() (parts []Part) {
	for _, i := range w.Perm(unionParts)[:1+w.IntN(unionParts)] {
		s := listwatch.Selection{Namespace: []string{"", "", "a"}[w.IntN(3)]}
		s.Labels = testkit.Labels(w.T, []string{"", "app=red", "app!=red"}[w.IntN(3)])
		if w.IntN(3) == 0 {
			s.Projection, _ = listwatch.ParseProjection([]string{"spec.node", "spec.app", "-spec"}[w.IntN(3)])
		}
		parts = append(parts, Part{w.logs[i], s})
	}
	return parts
}

// union returns the union of parts. If retention has dropped records that are newer than the
// revision, it advances the revision first: a store does so soon, and a watch waits for it.
func (w *unionWalk) union(parts []Part) *Union {
	if slices.ContainsFunc(parts, func(p Part) bool { return p.Log.Stats().Oldest > w.revision.Version() }) {
		w.revision.Advance(w.last)
	}
	u, err := NewUnion("", parts)
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// watch opens a watch that starts with the state, or at the newest version.
func (w *unionWalk) watch() {
	parts := w.someParts()
	q := listwatch.Query{Start: listwatch.Start(w.IntN(3)), InitialEvents: listwatch.InitialEventsYes, Bookmarks: true}
	q.Conflate = w.conflation()
	if q.Start == listwatch.StartAt {
		q.Version = w.revision.Version() / 2
	}
	c, err := w.union(parts).Watch(context.Background(), q)
	if err != nil {
		w.Fatalf("watch with initial events: %v", err)
	}
	w.readers = append(w.readers, newUnionReader(c, parts))
}

// conflation returns a value of Query.Conflate.
func (w *unionWalk) conflation() time.Duration { return time.Duration(w.IntN(3)/2) * -1 }

func newUnionReader(c listwatch.Watcher, parts []Part) *unionReader {
	r := &unionReader{Poller: c.(listwatch.Poller), parts: parts}
	for i := range r.states {
		r.states[i], r.gone[i] = make(map[listwatch.Key]string), make(map[listwatch.Key]bool)
	}
	return r
}

// resume opens a watch at the position of r, or in the past.
func (w *unionWalk) resume(r *unionReader) {
	at := r.Progress().Version
	if w.IntN(2) == 0 && w.revision.Version() > 0 {
		at = 1 + listwatch.Version(w.Int64N(int64(w.revision.Version())))
	}
	if at == 0 {
		return
	}
	c, err := w.union(r.parts).Watch(context.Background(), listwatch.Query{
		Start: listwatch.StartAt, Version: at, Conflate: w.conflation(),
	})
	if tooOld := slices.ContainsFunc(r.parts, func(p Part) bool { return p.Log.Stats().Oldest > at }); tooOld ||
		err != nil {
		if !tooOld || !errors.Is(err, listwatch.Expired) {
			w.Fatalf("resume at %d: got %v; a part lacks history: %t", at, err, tooOld)
		}
		w.counts.expired++
		return
	}
	resumed := newUnionReader(c, r.parts)
	for i, p := range r.parts {
		// Within the events of one version, the position is before that version.
		if resumed.states[i] = maps.Clone(r.states[i]); at != r.Progress().Version || at < r.last {
			resumed.states[i] = w.stateAt(p, at)
		}
	}
	resumed.synced, resumed.last = true, at
	w.readers = append(w.readers, resumed)
}

// difference opens a watch for a reader who has the state of r, and requests the difference to it.
func (w *unionWalk) difference(r *unionReader) {
	at := r.Progress().State
	if !r.synced || at.Version < r.last {
		return
	}
	q := listwatch.Query{
		InitialEvents: listwatch.InitialEventsYes, Bookmarks: true, Since: at,
		Conflate: w.conflation(),
	}
	if w.IntN(2) == 0 {
		q.Start, q.Version = listwatch.StartAt, at.Version
	}
	c, err := w.union(r.parts).Watch(context.Background(), q)
	if err != nil {
		w.Fatalf("watch with a difference: %v", err)
	}
	next := newUnionReader(c, r.parts)
	next.since = at.Version
	for i, state := range r.states {
		next.held[i] = maps.Clone(state)
	}
	w.readers = append(w.readers, next)
}

// forget makes l forget its departures.
func (w *unionWalk) forget(l *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.departures.Forget(w.last)
}

// stateAt returns the state of p at v.
func (w *unionWalk) stateAt(p Part, v listwatch.Version) map[listwatch.Key]string {
	state := make(map[listwatch.Key]string)
	for _, s := range w.models[slices.Index(w.logs, p.Log)].state(newSelection(p.Selection), v) {
		state[s.key] = p.text(s.data, s.version)
	}
	return state
}

// text returns data, the JSON of an object of version v, without the version if p hides changes.
func (p *Part) text(data string, v listwatch.Version) string {
	if p.Projection.Empty() {
		return data
	}
	return strings.Replace(data, `"`+v.String()+`"`, "", 1)
}

func (w *unionWalk) list() {
	parts := w.someParts()
	q := listwatch.Query{}
	if v := w.revision.Version(); v > 0 && w.IntN(2) == 0 {
		q.Start, q.Match, q.Version = listwatch.StartAt, listwatch.MatchExact, 1+listwatch.Version(w.Int64N(int64(v)))
	}
	page, err := w.union(parts).List(context.Background(), q)
	if err != nil {
		if !errors.Is(err, listwatch.Expired) || q.Match != listwatch.MatchExact {
			w.Fatalf("list %+v: %v", q, err)
		}
		w.counts.expired++
		return
	}
	if q.Version != 0 && page.Version != q.Version {
		w.Fatalf("the list is at %d, want %d", page.Version, q.Version)
	}
	w.counts.snapshots++
	var got, want []string
	for _, o := range page.Items {
		got = append(got, string(o.Data))
	}
	for _, p := range parts {
		for _, s := range w.models[slices.Index(w.logs, p.Log)].state(newSelection(p.Selection), page.Version) {
			want = append(want, s.data)
		}
	}
	if !slices.Equal(got, want) {
		w.Fatalf("list at %d: got %q, want %q", page.Version, got, want)
	}
}

func (w *unionWalk) read() {
	if len(w.readers) == 0 {
		return
	}
	i := w.IntN(len(w.readers))
	if !w.poll(w.readers[i]) || w.IntN(20) == 0 {
		w.readers[i].Close()
		w.readers = slices.Delete(w.readers, i, i+1)
	}
}

// poll reads a batch, and returns false if r has failed.
func (w *unionWalk) poll(r *unionReader) bool {
	batch := make([]listwatch.Event, 1+w.IntN(8))
	n, err := r.Poll(batch)
	if err != nil {
		if !errors.Is(err, listwatch.Expired) {
			w.Fatal(err)
		}
		w.counts.expired++
		return false
	}
	for _, e := range batch[:n] {
		w.receive(r, e)
	}
	switch p := r.Progress().Version; {
	case !r.synced && p != 0:
		w.Fatalf("position %d within the initial events, want 0", p)
	case p != 0 && p >= r.last:
		w.counts.positions++
		w.compare(r, p, "at a position")
	}
	return true
}

func (w *unionWalk) receive(r *unionReader, e listwatch.Event) {
	if e.Type == listwatch.Synced {
		w.sync(r, e)
		return
	}
	part := slices.IndexFunc(r.parts, func(p Part) bool {
		return strings.Contains(string(e.Object.Data), `"`+p.Log.Describe().Kind+`"`)
	})
	if e.Version > w.revision.Version() {
		w.Fatalf("an event at %d, at which other logs may lack writes: the revision is %d", e.Version,
			w.revision.Version())
	}
	if r.synced && e.Version < r.last {
		w.Fatalf("an event at %d after one at %d", e.Version, r.last)
	}
	if r.synced && e.Version > r.last {
		if !r.Progress().Conflates {
			w.counts.prefixes++
			w.compare(r, e.Version-1, "before an event")
		}
		r.last = e.Version
	}
	state := r.states[part]
	if e.Initial && e.Type == listwatch.Deleted {
		r.gone[part][e.Object.Key] = true
		return
	}
	w.counts.skipped += w.skipped(r.parts[part], e, state[e.Object.Key])
	if _, has := state[e.Object.Key]; has != (e.Type != listwatch.Added) || e.Initial == r.synced {
		w.Fatalf("got %v of %v at %d, initial %v; the reader has it: %v", e.Type, e.Object.Key, e.Version,
			e.Initial, has)
	}
	if state[e.Object.Key] = r.parts[part].text(string(e.Object.Data), e.Version); e.Type == listwatch.Deleted {
		delete(state, e.Object.Key)
	}
}

// sync applies the initial events, which the bookmark e has ended.
func (w *unionWalk) sync(r *unionReader, e listwatch.Event) {
	since, isDifference := e.Since()
	if isDifference && since != r.since {
		w.Fatalf("difference since %d, want %d", since, r.since)
	}
	if w.counts.snapshots++; isDifference {
		w.counts.differences++
	} else if r.since != 0 {
		w.counts.whole++
	}
	for i, state := range r.states {
		if !isDifference && len(r.gone[i]) > 0 {
			w.Fatalf("a whole state has DELETED %v", r.gone[i])
		}
		for key, data := range r.held[i] {
			if _, changed := state[key]; isDifference && !changed && !r.gone[i][key] {
				state[key] = data
			}
		}
	}
	r.synced, r.last = true, e.Version
	w.compare(r, e.Version, "after the initial events")
}

// skipped returns the number of changes of the object of e in p since the reader has seen it as
// data.
func (w *unionWalk) skipped(p Part, e listwatch.Event, data string) (n int) {
	if e.Type != listwatch.Modified || !p.Projection.Empty() {
		return 0
	}
	for _, r := range slices.Backward(w.models[slices.Index(w.logs, p.Log)].records) {
		if r.object().Key == e.Object.Key && r.Version < e.Version && r.New != nil {
			if string(r.New.Data) == data {
				return n
			}
			n++
		}
	}
	return n
}

func (w *unionWalk) compare(r *unionReader, v listwatch.Version, when string) {
	for i, p := range r.parts {
		if want := w.stateAt(p, v); !maps.Equal(r.states[i], want) {
			w.Fatalf("%s %d, part %d of %d: got %v, want %v", when, v, i, len(r.parts), r.states[i], want)
		}
	}
}

// finish reads everything, and checks that nothing is missing.
func (w *unionWalk) finish() {
	w.revision.Advance(w.last)
	for _, r := range w.readers {
		for r.Progress().Version < w.last && w.poll(r) {
		}
		r.Close()
	}
	for _, l := range w.logs {
		if n := l.Stats().Watchers; n != 0 {
			w.Fatalf("%d watchers remain after all unions were closed", n)
		}
	}
}
