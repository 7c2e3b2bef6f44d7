package conformance_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A recordedWrite is one acknowledged change of one object.
type recordedWrite struct {
	version listwatch.Version
	key     listwatch.Key
	// before and after are the labels of the object before and after the write. They are nil if the
	// object did not exist at that time.
	before, after map[string]string

	// now is the object after the write. last is the object before the write, but with the
	// version of the write, as in a DELETED event.
	now, last *objectContent
}

// An objectContent is the content of an object at one version.
type objectContent struct {
	data          []byte // the bytes that the store holds
	sum, valueSum [sha256.Size]byte

	// verified caches the hash of an encoding that has the same value as data but different bytes.
	// Most watchers receive the same encoding, so it is parsed only once.
	verified atomic.Pointer[[sha256.Size]byte]
}

// hasValue reports whether object, a JSON text, has the same value as o.
func (o *objectContent) hasValue(object []byte) (bool, error) {
	sum := sha256.Sum256(object)
	if verified := o.verified.Load(); verified != nil && *verified == sum {
		return true, nil
	}
	value, err := appendExact(nil, object)
	if err != nil || sha256.Sum256(value) != o.valueSum {
		return false, err
	}
	o.verified.Store(&sum)
	return true, nil
}

func newObjectContent(data []byte) (*objectContent, error) {
	exact, err := appendExact(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", excerptAt(data, 0), err)
	}
	return &objectContent{data: data, sum: sha256.Sum256(data), valueSum: sha256.Sum256(exact)}, nil
}

// A selector selects objects by label, without the parser under test.
type selector struct {
	text    string
	matches func(labels map[string]string) bool
}

var selectors = []selector{
	{"tier=gold", func(l map[string]string) bool { return l["tier"] == "gold" }},
	{"tier in (gold,silver),shade!=dark", func(l map[string]string) bool {
		return (l["tier"] == "gold" || l["tier"] == "silver") && l["shade"] != "dark"
	}},
	{"tier!=bronze,!canary", func(l map[string]string) bool {
		_, canary := l["canary"]
		return l["tier"] != "bronze" && !canary
	}},
}

// expectedEvent returns the event that a watcher of s must see for r. The type is empty if the
// watcher must see no event.
func (r *recordedWrite) expectedEvent(s selector) (eventType string, object *objectContent) {
	was := r.before != nil && s.matches(r.before)
	is := r.after != nil && s.matches(r.after)
	switch {
	case was && is:
		return "MODIFIED", r.now
	case is:
		return "ADDED", r.now
	case was:
		return "DELETED", r.last
	}
	return "", nil
}

// A receivedEvent is an event as a client received it.
type receivedEvent struct {
	eventType string
	version   listwatch.Version
	object    []byte
}

// verify compares a, a received event, with the event that a watcher with selector s must receive
// for r. It compares JSON values if byValue is true, and bytes otherwise.
func (r *recordedWrite) verify(a receivedEvent, s selector, byValue bool) error {
	eventType, object := r.expectedEvent(s)
	if eventType == "" {
		return fmt.Errorf("got %s of %s at version %d, want no event: labels %v before and %v after do not match %q",
			a.eventType, r.key, r.version, r.before, r.after, s.text)
	}
	if a.eventType != eventType {
		return fmt.Errorf("%s at version %d: got type %s, want %s (labels %v before, %v after, selector %q)",
			r.key, r.version, a.eventType, eventType, r.before, r.after, s.text)
	}
	if !byValue {
		if bytes.Equal(a.object, object.data) {
			return nil
		}
		return fmt.Errorf("%s %s at version %d: %s", eventType, r.key, r.version,
			firstDifference(a.object, object.data))
	}
	same, err := object.hasValue(a.object)
	if err != nil {
		return fmt.Errorf("%s %s at version %d: invalid JSON: %w", eventType, r.key, r.version, err)
	}
	if same {
		return nil
	}
	// Ignore errors: both texts have been parsed before, in hasValue and newObjectContent.
	got, _ := appendExact(nil, a.object)
	want, _ := appendExact(nil, object.data)
	return fmt.Errorf("%s %s at version %d has another value: %s", eventType, r.key, r.version,
		firstDifference(got, want))
}

func firstDifference(got, want []byte) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("got %d bytes, want %d; they differ at byte %d:\n got %s\nwant %s", len(got), len(want), at,
		excerptAt(got, at), excerptAt(want, at))
}

func excerptAt(b []byte, at int) string {
	from, to := max(0, at-24), min(len(b), at+72)
	return fmt.Sprintf("...%q...", b[from:to])
}

// verifyOrder checks that got contains the versions of all writes in history that a watcher with
// selector s must see, in order.
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
			return fmt.Errorf("event %d: got version %d, want %s %s at version %d", n, got[n],
				eventType, w.key, w.version)
		}
		n++
	}
	if n < len(got) {
		return fmt.Errorf("unexpected event %d of version %d", n, got[n])
	}
	return nil
}
