package checker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Recorder takes a history down. It is safe for concurrent use, and cheap: an event costs one fingerprint and one append.
type Recorder struct {
	// Sum makes fingerprints; nil: [Sum]. Where a framing doesn't keep the bytes of an object, it must be of the value. Set it
	// before use.
	Fingerprint func(data []byte) Fingerprint

	// Immutable after construction.
	start time.Time

	mu sync.Mutex
	// Guarded by mu.
	history  History
	sessions []*SessionRecorder // those of history.Sessions
}

// NewRecorder returns one whose time begins now. It sets m.Started.
func NewRecorder(m Meta) *Recorder {
	now := time.Now()
	m.Started = now.UTC().Round(0)
	return &Recorder{start: now, history: History{Meta: m}}
}

// Now returns the time since the Recorder was made; never zero.
func (r *Recorder) Elapsed() time.Duration { return max(1, time.Since(r.start)) }

func (r *Recorder) sum(data []byte) Fingerprint {
	if r.Fingerprint != nil {
		return r.Fingerprint(data)
	}
	return FingerprintOf(data)
}

// History returns what was recorded so far. It is the caller's, but must not be judged while anything goes on: what is on its
// way would look lost.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	h.Sessions = nil
	for _, s := range r.sessions {
		h.Sessions = append(h.Sessions, s.copy())
	}
	return &h
}

// Wrote records a write that was acknowledged just now; began is Now from before the request.
func (r *Recorder) RecordWrite(began time.Duration, w Write) {
	w.Began = began
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Acked = r.Elapsed()
	r.history.Writes = append(r.history.Writes, w)
}

// Side returns what o looks like on one side of a write.
func (r *Recorder) ObjectState(o *listwatch.Object) *ObjectState {
	return &ObjectState{Labels: o.Labels, Fields: o.Fields, Fingerprint: r.sum(o.Data)}
}

// Last returns what o looks like to who sees it go by a write of version v: itself, with the version of the write. Where the bytes hold
// the old version more than once, the payload is left open.
func (r *Recorder) DeletedState(o *listwatch.Object, v listwatch.Version) *ObjectState {
	s := &ObjectState{Labels: o.Labels, Fields: o.Fields}
	was, is := versionText(o.Version), versionText(v)
	if bytes.Count(o.Data, was) == 1 {
		// Not by Object.At, which is what stores do: the judge has to know by itself.
		s.Fingerprint = r.sum(bytes.Replace(o.Data, was, is, 1))
	}
	return s
}

func versionText(v listwatch.Version) []byte { return fmt.Appendf(nil, `"resourceVersion":"%d"`, v) }

// List records the answer to a list of q; began is Now from before the request. watcher may be empty.
func (r *Recorder) RecordList(watcher string, began time.Duration, q listwatch.Query, page listwatch.Page) {
	l := List{Watcher: watcher, Request: RequestOf(q), Began: began, ReceivedAt: r.Elapsed(), Version: page.Version, Items: r.items(page.Items), More: page.Continue != ""}
	l.Request.InitialEvents = false
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Lists = append(r.history.Lists, l)
}

func (r *Recorder) items(objects []*listwatch.Object) []Item {
	items := make([]Item, len(objects))
	for i, o := range objects {
		items[i] = Item{Key(o.Key), o.Version, r.sum(o.Data)}
	}
	return items
}

// Holds records what an informer holds at a version.
func (r *Recorder) RecordInformerState(informer string, s Selection, v listwatch.Version, objects []*listwatch.Object) {
	h := InformerState{informer, s, v, r.items(objects)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.InformerStates = append(r.history.InformerStates, h)
}

// Handled records a call of an informer's handler.
func (r *Recorder) RecordHandlerCall(c HandlerCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.HandlerCalls = append(r.history.HandlerCalls, c)
}

// Fault records a fault that bites now; f.At is set.
func (r *Recorder) RecordFault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.At = r.Elapsed()
	r.history.Faults = append(r.history.Faults, f)
}

// Compact calls compact, which makes the store forget its history, and records it; version returns that of the store.
func (r *Recorder) RecordCompaction(version func() listwatch.Version, compact func()) {
	f := Compaction{Began: r.Elapsed(), Low: version()}
	compact()
	f.High, f.Done = version(), r.Elapsed()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Compactions = append(r.history.Compactions, f)
}

// Heal records that the faults are over and nothing newer than v will be written before the next fault.
func (r *Recorder) RecordHeal(v listwatch.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Heals = append(r.history.Heals, Heal{r.Elapsed(), v})
}

// cleanEnd is what End.Why and Stream.Why say of a clean end.
const cleanEnd = "EOF"

// endOf returns how a session ended that ended with err.
func endOf(at time.Duration, err error) End {
	e := End{At: at, Error: err.Error()}
	if errors.Is(err, io.EOF) && listwatch.CodeOf(err) == listwatch.Unknown {
		e.Error = cleanEnd
	}
	if errors.Is(err, listwatch.Expired) {
		e.Expired, e.Remote = true, listwatch.AsError(err).Remote
	}
	return e
}
