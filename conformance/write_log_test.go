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

// A write is one acknowledged change of one object, as its writer knows it.
type recordedWrite struct {
	version       listwatch.Version
	key           listwatch.Key
	before, after map[string]string // the labels; nil: there was, there is no object
	now, last     *objectContent    // the object after the write; the one before it, at the version of the write
}

// content is what an object looks like.
type objectContent struct {
	data          []byte // that of the store, which keeps it anyway
	sum, valueSum [sha256.Size]byte

	// judged is the sum of other bytes that were found to have the same exact value: most watchers get the same spelling.
	verified atomic.Pointer[[sha256.Size]byte]
}

// isExactly reports whether the value of object, a JSON text, is that of c.
func (c *objectContent) hasValue(object []byte) (bool, error) {
	sum := sha256.Sum256(object)
	if judged := c.verified.Load(); judged != nil && *judged == sum {
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

// A selector chooses objects by their labels: in the words of the protocol, and by the test's own judgement.
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

// seenBy returns how a watcher of s sees w: ADDED where an object enters the selection, DELETED where it leaves; "": not at all.
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

// A ledger is the truth: the writers' own record. It is safe for concurrent use.
type writeLog struct {
	mu sync.Mutex
	// Guarded by mu.
	writes  map[listwatch.Version]*recordedWrite
	newest  listwatch.Version
	visible []int // how many writes each of selectors sees
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

// fewestVisible returns how many events the selector sees that sees fewest.
func (l *writeLog) fewestVisible() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Min(l.visible)
}

// head returns the newest version that a writer knows of.
func (l *writeLog) newestVersion() listwatch.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// at returns the write of version v. It waits, because an event may overtake the word to its writer.
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
		return nil, fmt.Errorf("no writer was told that version %d is its own: %w", v, ctx.Err())
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

// An arrival is an event as a client got it.
type receivedEvent struct {
	eventType string
	version   listwatch.Version
	object    []byte
}

// check compares a with w, as a watcher of s must see it: the bytes, or with exact the value.
func (w *recordedWrite) verify(a receivedEvent, s selector, exact bool) error {
	eventType, object := w.expectedEvent(s)
	if eventType == "" {
		return fmt.Errorf("%s of %s at version %d: labels %v before and %v after don't concern %q", a.eventType, w.key, w.version, w.before, w.after, s.text)
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
		return fmt.Errorf("%s %s at version %d is no JSON: %w", eventType, w.key, w.version, err)
	}
	if same {
		return nil
	}
	got, _ := appendExact(nil, a.object)
	want, _ := appendExact(nil, object.data) // both could be read before
	return fmt.Errorf("%s %s at version %d, as exact values: %s", eventType, w.key, w.version, firstDifference(got, want))
}

func firstDifference(got, want []byte) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("%d bytes, want %d; from byte %d on:\n got %s\nwant %s", len(got), len(want), at, excerptAt(got, at), excerptAt(want, at))
}

func excerptAt(b []byte, at int) string {
	from, to := max(0, at-24), min(len(b), at+72)
	return fmt.Sprintf("…%q…", b[from:to])
}

// checkOrder compares the versions that a watcher of s saw with the whole history.
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
		return fmt.Errorf("event %d, of version %d, is one too many", n, got[n])
	}
	return nil
}

// The matrix is worth what its judge is worth.
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
	truth := []receivedEvent{
		{"ADDED", 1, []byte(`{"n":1}`)},
		{"MODIFIED", 2, []byte(`{"n":18446744073709551617}`)},
		{"DELETED", 3, []byte(`{"n":2}`)},
		{"ADDED", 5, []byte(`{"n":5}`)},
		{"DELETED", 6, []byte(`{"n":5}`)},
	}
	judge := func(exact bool, told ...receivedEvent) error {
		var versions []listwatch.Version
		for _, a := range told {
			if err := history[a.version-1].verify(a, s, exact); err != nil {
				return err
			}
			versions = append(versions, a.version)
		}
		return verifyOrder(history, s, versions)
	}
	for _, exact := range []bool{false, true} {
		if err := judge(exact, truth...); err != nil {
			t.Errorf("the truth (exact %v): %v", exact, err)
		}
		for i := range truth {
			lies := map[string][]receivedEvent{
				"dropped":   slices.Delete(slices.Clone(truth), i, i+1),
				"repeated":  slices.Insert(slices.Clone(truth), i, truth[i]),
				"retyped":   slices.Replace(slices.Clone(truth), i, i+1, receivedEvent{"BOOKMARK", truth[i].version, truth[i].object}),
				"corrupted": slices.Replace(slices.Clone(truth), i, i+1, receivedEvent{truth[i].eventType, truth[i].version, []byte(`{"n":18446744073709551616}`)}),
				"invented":  slices.Insert(slices.Clone(truth), i, receivedEvent{"MODIFIED", 4, []byte(`{"n":4}`)}),
			}
			if i > 0 {
				lies["swapped"] = slices.Replace(slices.Clone(truth), i-1, i+1, truth[i], truth[i-1])
			}
			for what, told := range lies {
				if judge(exact, told...) == nil {
					t.Errorf("event %d %s went unnoticed (exact %v)", i, what, exact)
				}
			}
		}
	}
	if err := judge(true, append([]receivedEvent{{"ADDED", 1, []byte(` {"n":1.0}`)}}, truth[1:]...)...); err != nil {
		t.Errorf("the same value in other words: %v", err)
	}
	if judge(false, append([]receivedEvent{{"ADDED", 1, []byte(`{"n":1.0}`)}}, truth[1:]...)...) == nil {
		t.Error("other bytes for the same value went unnoticed")
	}
}
