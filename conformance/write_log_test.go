package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
)

// A recordedWrite is one acknowledged change of one object.
type recordedWrite struct {
	version       listwatch.Version
	key           listwatch.Key
	before, after map[string]string // labels; nil if the object did not or does not exist
	now, last     *objectContent    // the object after the write, and the previous object with the version of the write
}

// An objectContent is the content of an object at one version.
type objectContent struct {
	data          []byte // the bytes that the store holds
	sum, valueSum [sha256.Size]byte

	// verified is the hash of another encoding that was found to have the same value. Most
	// watchers receive the same encoding.
	verified atomic.Pointer[[sha256.Size]byte]
}

// hasValue reports whether object, a JSON text, has the same value as c.
func (c *objectContent) hasValue(object []byte) (bool, error) {
	sum := sha256.Sum256(object)
	if verified := c.verified.Load(); verified != nil && *verified == sum {
		return true, nil
	}
	value, err := appendExact(nil, object)
	if err != nil || sha256.Sum256(value) != c.valueSum {
		return false, err
	}
	c.verified.Store(&sum)
	return true, nil
}

func newObjectContent(data []byte) (*objectContent, error) {
	exact, err := appendExact(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", excerptAt(data, 0), err)
	}
	return &objectContent{data: data, sum: sha256.Sum256(data), valueSum: sha256.Sum256(exact)}, nil
}

// A selector selects objects by label. matches is independent of the parser under test.
type selector struct {
	text    string
	matches func(labels map[string]string) bool
}

var selectors = []selector{
	{"tier=gold", func(l map[string]string) bool { return l["tier"] == "gold" }},
	{"tier in (gold,silver),shade!=dark", func(l map[string]string) bool {
		return (l["tier"] == "gold" || l["tier"] == "silver") && l["shade"] != "dark"
	}},
	{"tier!=bronze,!canary", func(l map[string]string) bool { _, canary := l["canary"]; return l["tier"] != "bronze" && !canary }},
}

// expectedEvent returns the event that a watcher of s must see for w. The type is empty if
// it must see none.
func (w *recordedWrite) expectedEvent(s selector) (eventType string, object *objectContent) {
	was := w.before != nil && s.matches(w.before)
	is := w.after != nil && s.matches(w.after)
	switch {
	case was && is:
		return "MODIFIED", w.now
	case is:
		return "ADDED", w.now
	case was:
		return "DELETED", w.last
	}
	return "", nil
}

// A writeLog contains the acknowledged writes as their writers recorded them. It is safe
// for concurrent use.
type writeLog struct {
	mu sync.Mutex
	// Guarded by mu.
	writes  map[listwatch.Version]*recordedWrite
	newest  listwatch.Version
	visible []int // number of writes that each of selectors sees
	awaited map[listwatch.Version]chan struct{}
}

func newWriteLog() *writeLog {
	return &writeLog{
		writes: make(map[listwatch.Version]*recordedWrite), visible: make([]int, len(selectors)),
		awaited: make(map[listwatch.Version]chan struct{}),
	}
}

func (l *writeLog) add(w *recordedWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[w.version] = w
	l.newest = max(l.newest, w.version)
	for i, s := range selectors {
		if eventType, _ := w.expectedEvent(s); eventType != "" {
			l.visible[i]++
		}
	}
	if c := l.awaited[w.version]; c != nil {
		close(c)
		delete(l.awaited, w.version)
	}
}

// fewestVisible returns the smallest number of events that any selector sees.
func (l *writeLog) fewestVisible() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Min(l.visible)
}

// newestVersion returns the newest acknowledged version.
func (l *writeLog) newestVersion() listwatch.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// await returns the write of version v. It waits if necessary, because an event may arrive
// before its writer has recorded the write.
func (l *writeLog) await(ctx context.Context, v listwatch.Version) (*recordedWrite, error) {
	l.mu.Lock()
	w, c := l.writes[v], l.awaited[v]
	if w == nil && c == nil {
		c = make(chan struct{})
		l.awaited[v] = c
	}
	l.mu.Unlock()
	if w != nil {
		return w, nil
	}
	select {
	case <-c:
	case <-ctx.Done():
		return nil, fmt.Errorf("no writer recorded version %d: %w", v, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[v], nil
}

// history returns all writes in order.
func (l *writeLog) history() []*recordedWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*recordedWrite
	for _, w := range l.writes {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *recordedWrite) int { return cmp.Compare(a.version, b.version) })
	return all
}

// A receivedEvent is an event as a client received it.
type receivedEvent struct {
	eventType string
	version   listwatch.Version
	object    []byte
}

// verify compares a with the event that a watcher of s must see for w: by bytes, or by
// value if exact is true.
func (w *recordedWrite) verify(a receivedEvent, s selector, exact bool) error {
	eventType, object := w.expectedEvent(s)
	if eventType == "" {
		return fmt.Errorf("got %s of %s at version %d, want no event: labels %v before and %v after do not match %q", a.eventType, w.key, w.version, w.before, w.after, s.text)
	}
	if a.eventType != eventType {
		return fmt.Errorf("%s at version %d: got type %s, want %s (labels %v before, %v after, selector %q)",
			w.key, w.version, a.eventType, eventType, w.before, w.after, s.text)
	}
	if !exact {
		if bytes.Equal(a.object, object.data) {
			return nil
		}
		return fmt.Errorf("%s %s at version %d: %s", eventType, w.key, w.version, firstDifference(a.object, object.data))
	}
	same, err := object.hasValue(a.object)
	if err != nil {
		return fmt.Errorf("%s %s at version %d: invalid JSON: %w", eventType, w.key, w.version, err)
	}
	if same {
		return nil
	}
	got, _ := appendExact(nil, a.object)
	want, _ := appendExact(nil, object.data) // both were valid before
	return fmt.Errorf("%s %s at version %d has another value: %s", eventType, w.key, w.version, firstDifference(got, want))
}

func firstDifference(got, want []byte) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("got %d bytes, want %d; they differ at byte %d:\n got %s\nwant %s", len(got), len(want), at, excerptAt(got, at), excerptAt(want, at))
}

func excerptAt(b []byte, at int) string {
	from, to := max(0, at-24), min(len(b), at+72)
	return fmt.Sprintf("…%q…", b[from:to])
}

// verifyOrder compares the versions that a watcher of s saw with the history.
func verifyOrder(history []*recordedWrite, s selector, got []listwatch.Version) error {
	n := 0
	for _, w := range history {
		eventType, _ := w.expectedEvent(s)
		if eventType == "" {
			continue
		}
		if n == len(got) {
			return fmt.Errorf("event %d is missing: %s %s at version %d", n, eventType, w.key, w.version)
		}
		if got[n] != w.version {
			return fmt.Errorf("event %d: got version %d, want %s %s at version %d", n, got[n], eventType, w.key, w.version)
		}
		n++
	}
	if n < len(got) {
		return fmt.Errorf("unexpected event %d of version %d", n, got[n])
	}
	return nil
}

// The matrix test is only as good as its write log.
func TestWriteLogDetectsEveryDefect(t *testing.T) {
	object := func(data string) *objectContent {
		c, err := newObjectContent([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	gold, bronze := map[string]string{"tier": "gold"}, map[string]string{"tier": "bronze"}
	history := []*recordedWrite{
		{version: 1, after: gold, now: object(`{"n":1}`)},
		{version: 2, before: gold, after: gold, now: object(`{"n":18446744073709551617}`), last: object(`{"n":1}`)},
		{version: 3, before: gold, after: bronze, now: object(`{"n":3}`), last: object(`{"n":2}`)},
		{version: 4, before: bronze, after: bronze, now: object(`{"n":4}`), last: object(`{"n":3}`)},
		{version: 5, before: bronze, after: gold, now: object(`{"n":5}`), last: object(`{"n":4}`)},
		{version: 6, before: gold, last: object(`{"n":5}`)},
	}
	s := selectors[0]
	correct := []receivedEvent{
		{"ADDED", 1, []byte(`{"n":1}`)},
		{"MODIFIED", 2, []byte(`{"n":18446744073709551617}`)},
		{"DELETED", 3, []byte(`{"n":2}`)},
		{"ADDED", 5, []byte(`{"n":5}`)},
		{"DELETED", 6, []byte(`{"n":5}`)},
	}
	verifyAll := func(exact bool, events ...receivedEvent) error {
		var versions []listwatch.Version
		for _, a := range events {
			if err := history[a.version-1].verify(a, s, exact); err != nil {
				return err
			}
			versions = append(versions, a.version)
		}
		return verifyOrder(history, s, versions)
	}
	for _, exact := range []bool{false, true} {
		if err := verifyAll(exact, correct...); err != nil {
			t.Errorf("correct events (exact %v): %v", exact, err)
		}
		for i := range correct {
			defects := map[string][]receivedEvent{
				"dropped":   slices.Delete(slices.Clone(correct), i, i+1),
				"repeated":  slices.Insert(slices.Clone(correct), i, correct[i]),
				"retyped":   slices.Replace(slices.Clone(correct), i, i+1, receivedEvent{"BOOKMARK", correct[i].version, correct[i].object}),
				"corrupted": slices.Replace(slices.Clone(correct), i, i+1, receivedEvent{correct[i].eventType, correct[i].version, []byte(`{"n":18446744073709551616}`)}),
				"added":     slices.Insert(slices.Clone(correct), i, receivedEvent{"MODIFIED", 4, []byte(`{"n":4}`)}),
			}
			if i > 0 {
				defects["swapped"] = slices.Replace(slices.Clone(correct), i-1, i+1, correct[i], correct[i-1])
			}
			for what, events := range defects {
				if verifyAll(exact, events...) == nil {
					t.Errorf("event %d %s was not detected (exact %v)", i, what, exact)
				}
			}
		}
	}
	if err := verifyAll(true, append([]receivedEvent{{"ADDED", 1, []byte(` {"n":1.0}`)}}, correct[1:]...)...); err != nil {
		t.Errorf("another encoding of the same value: %v", err)
	}
	if verifyAll(false, append([]receivedEvent{{"ADDED", 1, []byte(`{"n":1.0}`)}}, correct[1:]...)...) == nil {
		t.Error("other bytes with the same value were not detected")
	}
}
