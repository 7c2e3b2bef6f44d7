package history

import (
	"cmp"
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
)

// A conflationWalk writes a random history to a Log, and compares what conflating and ordinary
// readers receive with all events of their selections.
type conflationWalk struct {
	*rand.Rand
	mutant  conflationMutant
	log     *Log
	model   model
	version listwatch.Version
	readers []*conflationReader
	counts  conflationCounts
}

type conflationCounts struct{ events, skipped, exact, resumed, expired int }

func (c *conflationCounts) add(d conflationCounts) {
	c.events, c.skipped, c.exact = c.events+d.events, c.skipped+d.skipped, c.exact+d.exact
	c.resumed, c.expired = c.resumed+d.resumed, c.expired+d.expired
}

// A conflationReader is the reader of a watch that is cut and resumed.
type conflationReader struct {
	query     listwatch.Query
	cursor    listwatch.Poller // a *paced if it conflates
	selection selection
	objects   map[listwatch.Key]string // the state of the reader
	stale     map[listwatch.Key]bool   // the objects whose newest event was skipped
	version   listwatch.Version        // of the last event or bookmark
	scanned   int                      // index of the next record of the model
	initial   bool                     // the initial events are not complete
	// exactFrom is the version at which the pass would have ended within which the watch was cut.
	exactFrom listwatch.Version
}

// A conflationMutant changes a cursor before and after it is read.
type conflationMutant struct {
	name          string
	before, after func(p *paced)
}

// changeNodes calls change with the nodes that p may read.
func changeNodes(p *paced, change func(n *node)) {
	f := feedOf(p.Cursor)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	defer f.lock()()
	for n := f.chain.floor.next.Load(); n != nil; n = n.next.Load() {
		change(n)
	}
}

var conflationMutants = []conflationMutant{
	{name: "the position moves within a pass", after: func(p *paced) { p.pass.end = 0 }},
	{name: "an ADDED event is skipped", before: func(p *paced) {
		changeNodes(p, func(n *node) {
			if n.eventType == listwatch.Added && n.superseded.Load() != 0 {
				n.eventType = listwatch.Modified
			}
		})
	}},
	{name: "a pass has no end", before: func(p *paced) {
		changeNodes(p, func(n *node) {
			if n.superseded.Load() != 0 {
				n.superseded.Store(1)
			}
		})
	}},
	{name: "a write supersedes all states of its object", before: func(p *paced) {
		written := make(map[listwatch.Key]listwatch.Version)
		for _, o := range feedOf(p.Cursor).log.Objects() {
			written[o.Key] = o.Version
		}
		changeNodes(p, func(n *node) {
			r := n.handle.record.Load()
			if r == nil || n.superseded.Load() != 0 {
				return
			}
			if v := written[r.object().Key]; v > r.Version {
				n.superseded.Store(uint64(v))
			}
		})
	}},
}

func TestConflatedHistoriesAreExactAtEachPosition(t *testing.T) {
	t.Logf("seed %d (repeat with -seed)", *seed)
	var sum conflationCounts
	for i := range racetest.Rounds(1000) {
		w := newConflationWalk(*seed, uint64(i), conflationMutant{})
		if err := w.run(200); err != nil {
			t.Fatalf("history %d: %v", i, err)
		}
		sum.add(w.counts)
	}
	t.Logf("%+v", sum)
	if r := racetest.Rounds; sum.skipped < r(3000) || sum.exact < r(30_000) || sum.resumed < r(3000) ||
		sum.expired < r(30) {
		t.Errorf("the histories covered too little: %+v", sum)
	}
}

// TestConflationMutantsFail shows that the random histories find each defect.
func TestConflationMutantsFail(t *testing.T) {
	for _, m := range conflationMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Logf("seed %d (repeat with -seed)", *seed)
			for i := range 200 {
				if err := newConflationWalk(*seed, uint64(i), m).run(200); err != nil {
					t.Logf("history %d: %v", i, err)
					return
				}
			}
			t.Error("the mutant was not found")
		})
	}
}

func newConflationWalk(seed, n uint64, m conflationMutant) *conflationWalk {
	w := &conflationWalk{Rand: rand.New(rand.NewPCG(seed, n)), mutant: m}
	w.log = New(Options{
		Retention:   listwatch.Retention{Bytes: int64(10+w.IntN(100)) << 10},
		Description: listwatch.Description{Kind: "Thing", APIVersion: "v1", Fields: []string{"spec.node"}},
	})
	w.log.feeds.limits = feedLimits{
		nodesPerFeed: 1 + w.IntN(40), nodesPerRecord: w.IntN(9), feedsPerTerm: w.IntN(3), idle: w.IntN(4),
	}
	return w
}

func (w *conflationWalk) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w *conflationWalk) run(steps int) error {
	for range 5 {
		w.write()
	}
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	for _, r := range w.readers {
		for polls := 0; r.cursor.Progress().Version != w.version; polls++ {
			if err := w.read(r); err != nil {
				return err
			}
			if polls > len(w.model.records) {
				return fmt.Errorf("a reader stopped at %d, and the version is %d", r.cursor.Progress().Version,
					w.version)
			}
		}
	}
	return nil
}

func (w *conflationWalk) step() error {
	var r *conflationReader
	if len(w.readers) > 0 {
		r = w.readers[w.IntN(len(w.readers))]
	}
	switch n := w.IntN(100); {
	case n < 50:
		w.write()
	case n < 55 && len(w.readers) < 8 || r == nil:
		w.open()
	case n < 98:
		return w.read(r)
	case w.IntN(8) == 0:
		w.log.Compact()
	}
	return nil
}

func (w *conflationWalk) write() {
	w.version += listwatch.Version(1 + w.IntN(3))
	var group []Record
	for range 1 + w.IntN(maxGroup)*w.IntN(8)/7 {
		key := listwatch.Key{Namespace: w.pick("a", "b"), Name: w.pick("v", "x", "y")}
		if slices.ContainsFunc(group, func(r Record) bool { return r.object().Key == key }) {
			continue
		}
		r := Record{Version: w.version, Old: w.log.Get(key)}
		if r.Old == nil || w.IntN(8) > 0 {
			r.New = thing(key, w.version, map[string]string{"app": w.pick("red", "red", "red", "blue")},
				w.pick("n1", "n1", "n2"))
		}
		group = append(group, r)
	}
	slices.SortFunc(group, func(a, b Record) int { return a.object().Key.Compare(b.object().Key) })
	w.log.Append(group...)
	w.model.records = append(w.model.records, group...)
}

// open adds a reader that starts with the initial events, or at a version whose state it has.
func (w *conflationWalk) open() {
	q := listwatch.Query{
		Selection: listwatch.Selection{Namespace: w.pick("", "", "a"), Name: w.pick("", "", "x")}, Bookmarks: true,
	}
	q.Labels, _ = listwatch.ParseLabelSelector(w.pick("", "", "app=red", "app!=red"))
	q.Fields, _ = listwatch.ParseFieldSelector(w.pick("", "", "", "spec.node=n1", "spec.node!=n1"))
	if w.IntN(3) == 0 {
		q.Projection, _ = listwatch.ParseProjection(w.pick("spec.node", "spec.app", "-spec"))
	}
	r := &conflationReader{query: q, selection: newSelection(q.Selection)}
	w.readers = append(w.readers, r)
	if stats := w.log.Stats(); w.IntN(2) == 0 {
		r.version = stats.Oldest + listwatch.Version(w.IntN(int(stats.Newest-stats.Oldest)+1))
		r.objects, r.stale = r.stateAt(&w.model, r.version), make(map[listwatch.Key]bool)
	}
	w.watch(r)
}

// stateAt returns the state of r at v.
func (r *conflationReader) stateAt(m *model, v listwatch.Version) map[listwatch.Key]string {
	state := make(map[listwatch.Key]string)
	for _, o := range m.state(r.selection, v) {
		state[o.key] = r.textOf(o.data, o.version)
	}
	return state
}

// textOf returns data, the JSON of an object of version v, without the version if r sees only a
// part of the object.
func (r *conflationReader) textOf(data string, v listwatch.Version) string {
	if r.selection.Projection.Empty() {
		return data
	}
	return strings.Replace(data, v.String(), "", 1)
}

// watch makes r continue after its version, with or without conflation. It starts over if its
// version is zero, or has expired.
func (w *conflationWalk) watch(r *conflationReader) {
	q := r.query
	q.Conflate = time.Duration(w.IntN(3) - 1)
	q.Start, q.Version, q.InitialEvents = listwatch.StartAt, r.version, listwatch.InitialEventsNo
	c, err := w.log.Watch(context.Background(), q)
	if r.initial || r.version == 0 || errors.Is(err, listwatch.Expired) {
		if err == nil {
			_ = c.Close() // returns nil
		}
		q.Start, q.Version, q.InitialEvents = listwatch.StartNewest, 0, listwatch.InitialEventsYes
		c, err = w.log.Watch(context.Background(), q)
		r.version, r.initial, r.exactFrom = w.version, true, 0
		r.objects, r.stale = make(map[listwatch.Key]string), make(map[listwatch.Key]bool)
	}
	if err != nil {
		panic(err)
	}
	r.cursor, r.scanned = c.(listwatch.Poller), w.model.after(r.version)
}

// maxGroup is the largest number of records of one version. A smaller batch would split them, and
// a reader cannot resume between two events of one version.
const maxGroup = 3

// read reads a batch. Sometimes it cuts the watch after any event of the batch, and resumes it.
func (w *conflationWalk) read(r *conflationReader) error {
	events := make([]listwatch.Event, maxGroup+w.IntN(1+w.IntN(20)))
	conflated, _ := r.cursor.(*paced)
	if conflated != nil && w.mutant.before != nil {
		w.mutant.before(conflated)
	}
	n, err := r.cursor.Poll(events)
	if conflated != nil && w.mutant.after != nil {
		w.mutant.after(conflated)
	}
	if errors.Is(err, listwatch.Expired) {
		w.counts.expired++
		_ = r.cursor.Close() // returns nil
		w.watch(r)
		return nil
	}
	if err != nil {
		return err
	}
	cut := w.IntN(6) == 0
	if cut && n > 0 {
		all := n
		if r.exactFrom = max(r.exactFrom, events[n-1].Version); conflated != nil {
			r.exactFrom = max(r.exactFrom, conflated.pass.end)
		}
		for n = w.IntN(n + 1); n > 0 && n < all && events[n].Version == events[n-1].Version; n-- {
		}
	}
	w.counts.events += n
	for _, e := range events[:n] {
		if err := w.take(r, e); err != nil {
			return fmt.Errorf("conflated %t, selection %q: %w", r.cursor.Progress().Conflates, r.selection.Key(), err)
		}
	}
	if !cut {
		return w.checkExact(r)
	}
	w.counts.resumed++
	_ = r.cursor.Close() // returns nil
	w.watch(r)
	return nil
}

// take compares e with the next events of the selection, and applies it to the state of r.
func (w *conflationWalk) take(r *conflationReader, e listwatch.Event) error {
	switch {
	case e.Type == listwatch.Synced:
		r.initial = false
		return nil
	case e.Initial:
		r.objects[e.Object.Key] = r.textOf(string(e.Object.Data), e.Version)
		return nil
	}
	got := seen{e.Type, e.Object.Key, e.Version, string(e.Object.Data)}
	for ; ; r.scanned++ {
		if r.scanned == len(w.model.records) {
			return fmt.Errorf("got %+v, which is not the next event", got)
		}
		want, ok := expectedEvent(w.model.records[r.scanned], r.selection)
		if ok && got == want {
			r.scanned++
			break
		}
		if ok && (want.kind != listwatch.Modified || !r.cursor.Progress().Conflates) {
			return fmt.Errorf("got %+v, and missed %+v", got, want)
		}
		if ok {
			w.counts.skipped++
			r.stale[want.key] = true
		}
	}
	if _, holds := r.objects[got.key]; holds == (got.kind == listwatch.Added) {
		return fmt.Errorf("got %+v, although the reader has the object: %t", got, holds)
	}
	r.version = got.version
	r.objects[got.key] = r.textOf(got.data, got.version)
	delete(r.stale, got.key)
	if got.kind == listwatch.Deleted {
		delete(r.objects, got.key)
	}
	return nil
}

// checkExact compares the state of r with the log if a bookmark could be sent now.
func (w *conflationWalk) checkExact(r *conflationReader) error {
	at := r.cursor.Progress().Version
	if at == 0 || at < r.version || at < r.exactFrom {
		return nil
	}
	w.counts.exact++
	want := r.stateAt(&w.model, at)
	if len(r.stale) > 0 || !maps.Equal(r.objects, want) {
		return fmt.Errorf("conflated %t, selection %q: the state at %d is %v with %v out of date, want %v",
			r.cursor.Progress().Conflates, r.selection.Key(), at, r.objects, r.stale, want)
	}
	if w.IntN(3) == 0 {
		r.version = at // as if the reader had received a bookmark
	}
	return nil
}

// newConflationLog returns a log and a function that writes an object of the given name.
func newConflationLog() (l *Log, write func(name string)) {
	l = New(Options{Description: listwatch.Description{Kind: "Thing", APIVersion: "v1"}})
	version := listwatch.Version(0)
	return l, func(name string) {
		version++
		key := listwatch.Key{Namespace: "a", Name: name}
		l.Append(Record{Version: version, Old: l.Get(key), New: thing(key, version, nil, "")})
	}
}

// conflated returns a conflating cursor that starts at version v, or with the initial events if v
// is zero.
func conflated(t testing.TB, l *Log, v listwatch.Version) *paced {
	t.Helper()
	q := listwatch.Query{Conflate: -1}
	if v != 0 {
		q.Start, q.Version = listwatch.StartAt, v
	}
	c, err := l.Watch(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*paced)
}

// describe returns the events that c returns in polls of count events, until it has read all.
func describe(t *testing.T, c listwatch.Poller, count int) (all []string) {
	t.Helper()
	for {
		events := make([]listwatch.Event, count)
		n, err := c.Poll(events)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		for _, e := range events[:n] {
			all = append(all, fmt.Sprintf("%s %s %d", e.Type, e.Object.Key.Name, e.Version))
		}
	}
}

func TestConflationSkipsOnlySupersededChanges(t *testing.T) {
	l, write := newConflationLog()
	c := conflated(t, l, 0)
	for _, name := range []string{"x", "y", "x", "y", "x"} {
		write(name)
	}
	want := []string{"ADDED x 1", "ADDED y 2", "MODIFIED y 4", "MODIFIED x 5"}
	if got := describe(t, c, 64); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPassesOfASlowReaderEnd(t *testing.T) {
	l, write := newConflationLog()
	for _, name := range []string{"x", "y", "z"} {
		write(name)
	}
	c := conflated(t, l, 3)
	var got []string
	for range 3 {
		for _, name := range []string{"x", "y", "z"} {
			write(name) // between any two polls, all objects change
		}
		var events [1]listwatch.Event
		if n, err := c.Poll(events[:]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		got = append(got, events[0].Object.Key.Name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("got events of %q, want one of each object", got)
	}
}

func TestOldRecordsAreConflated(t *testing.T) {
	l, write := newConflationLog()
	write("x")
	for range 3*conflatedRecords - 1 {
		write("y")
	}
	c := conflated(t, l, 1)
	if _, ok := c.stage.(*backlog); !ok {
		t.Fatal("the cursor does not read the log")
	}
	want := []string{"ADDED y 2", "MODIFIED y 4097", "MODIFIED y 8193", "MODIFIED y 12288"}
	if got := describe(t, c, 3); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLatestNodesShrinkWithRetention(t *testing.T) {
	l, write := newConflationLog()
	c := conflated(t, l, 0)
	for i := range 1000 {
		write(fmt.Sprint(i))
	}
	before := l.Stats().HistoryBytes
	if got := l.feeds.size.latest.Load(); got != 1000 {
		t.Fatalf("%d objects are counted, want 1000", got)
	}
	l.CompactTo(990)
	if got := l.feeds.size.latest.Load(); got > 2*10+positionInterval {
		t.Errorf("%d objects are held for 10 nodes", got)
	}
	if got := l.Stats().HistoryBytes; got >= before-500*latestBytes {
		t.Errorf("HistoryBytes is %d after Compact, and was %d", got, before)
	}
	_ = c.Close() // returns nil
	l.feeds.removeIdle(time.Now().Add(feedIdleTimeout))
	if got := l.feeds.size.latest.Load(); got != 0 {
		t.Errorf("%d objects are counted without a feed", got)
	}
}

// TestConflationWithConcurrentWrites lets readers and a matcher race with the writes.
func TestConflationWithConcurrentWrites(t *testing.T) {
	l, write := newConflationLog()
	q := listwatch.Query{Conflate: -1, Bookmarks: true}
	q.Labels, _ = listwatch.ParseLabelSelector("app!=red")
	done := make(chan error)
	const writes = 5000
	for i := range 4 {
		w, err := l.Watch(context.Background(), listwatch.Query{
			Conflate:  q.Conflate,
			Selection: listwatch.Selection{Labels: [...]listwatch.LabelSelector{{}, q.Labels}[i%2]},
		})
		if err != nil {
			t.Fatal(err)
		}
		// It ends after the last write.
		go func() { done <- readVersions(w.(listwatch.Poller), writes) }()
	}
	for range writes {
		write(fmt.Sprint(rand.IntN(10)))
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// readVersions reads c to the given version, and checks that versions increase.
func readVersions(c listwatch.Poller, to listwatch.Version) error {
	var events [16]listwatch.Event
	for last := listwatch.Version(0); c.Progress().Version < to; {
		n, err := c.Next(context.Background(), events[:])
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			if cmp.Compare(e.Version, last) <= 0 {
				return fmt.Errorf("version %d after %d", e.Version, last)
			}
			last = e.Version
		}
	}
	return nil
}
