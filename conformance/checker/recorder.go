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

// A Recorder records a history. It is safe for concurrent use. Recording an event costs one
// fingerprint and one append.
type Recorder struct {
	// Fingerprint computes fingerprints of objects. If nil, [FingerprintOf] is used. If the framing
	// changes the encoding of objects, the function must compute the fingerprint of the value
	// instead of the bytes. Set Fingerprint before the Recorder is used.
	Fingerprint func(data []byte) Fingerprint

	// Immutable after construction.
	start time.Time

	mu sync.Mutex
	// Guarded by mu.
	history  History
	sessions []*SessionRecorder // the recorders of history.Sessions
}

// NewRecorder returns a Recorder whose clock starts now. The Started field of its Meta is the
// current time.
func NewRecorder(m Meta) *Recorder {
	now := time.Now()
	m.Started = now.UTC().Round(0)
	return &Recorder{start: now, history: History{Meta: m}}
}

// Elapsed returns the time since the Recorder was created. It is never zero.
func (r *Recorder) Elapsed() time.Duration { return max(1, time.Since(r.start)) }

func (r *Recorder) fingerprint(data []byte) Fingerprint {
	if r.Fingerprint != nil {
		return r.Fingerprint(data)
	}
	return FingerprintOf(data)
}

// History returns a copy of the history recorded so far. To check it, wait until all writes and
// watches have ended: events in flight would be reported as missing.
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

// RecordWrite records a write that was just acknowledged. began is the value of Elapsed
// before the request.
func (r *Recorder) RecordWrite(began time.Duration, w Write) {
	w.Began = began
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Acked = r.Elapsed()
	r.history.Writes = append(r.history.Writes, w)
}

// ObjectState returns the state of o.
func (r *Recorder) ObjectState(o *listwatch.Object) *ObjectState {
	return &ObjectState{Labels: o.Labels, Fields: o.Fields, Fingerprint: r.fingerprint(o.Data)}
}

// DeletedState returns the state of o as a DELETED event shows it after a write of version v: the
// same object with that version. Unless o.Data contains the old version exactly once, the
// fingerprint remains zero, which means unknown.
func (r *Recorder) DeletedState(o *listwatch.Object, v listwatch.Version) *ObjectState {
	s := &ObjectState{Labels: o.Labels, Fields: o.Fields}
	was, is := versionText(o.Version), versionText(v)
	if bytes.Count(o.Data, was) == 1 {
		// Stores replace the version with Object.At. The checker has code of its own, so that it
		// can detect mistakes in Object.At.
		s.Fingerprint = r.fingerprint(bytes.Replace(o.Data, was, is, 1))
	}
	return s
}

func versionText(v listwatch.Version) []byte { return fmt.Appendf(nil, `"resourceVersion":"%d"`, v) }

// RecordList records the response to a list. began is the value of Elapsed before the request.
// watcher is the name of the watcher that continues from the list, or empty if no watcher does.
func (r *Recorder) RecordList(watcher string, began time.Duration, q listwatch.Query, page listwatch.Page) {
	l := List{
		Watcher: watcher, Request: RequestOf(q), Began: began, ReceivedAt: r.Elapsed(), Version: page.Version,
		Items: r.items(page.Items), More: page.Continue != "",
	}
	l.Request.InitialEvents = false
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Lists = append(r.history.Lists, l)
}

func (r *Recorder) items(objects []*listwatch.Object) []Item {
	items := make([]Item, len(objects))
	for i, o := range objects {
		items[i] = Item{Key(o.Key), o.Version, r.fingerprint(o.Data)}
	}
	return items
}

// RecordInformerState records the content of an informer at a version.
func (r *Recorder) RecordInformerState(informer string, s Selection, v listwatch.Version, objects []*listwatch.Object) {
	h := InformerState{informer, s, v, r.items(objects)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.InformerStates = append(r.history.InformerStates, h)
}

// RecordHandlerCall records a call of an informer's handler.
func (r *Recorder) RecordHandlerCall(c HandlerCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.HandlerCalls = append(r.history.HandlerCalls, c)
}

// RecordFault records f as a fault that takes effect now. The value of f.At is ignored.
func (r *Recorder) RecordFault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.At = r.Elapsed()
	r.history.Faults = append(r.history.Faults, f)
}

// RecordCompaction calls compact, which must discard the store's history, and records the
// compaction. version must return the newest version of the store.
func (r *Recorder) RecordCompaction(version func() listwatch.Version, compact func()) {
	f := Compaction{Began: r.Elapsed(), Low: version()}
	compact()
	f.High, f.Done = version(), r.Elapsed()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Compactions = append(r.history.Compactions, f)
}

// RecordHeal records that the faults have ended. Nothing newer than v may be written before
// the next fault.
func (r *Recorder) RecordHeal(v listwatch.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Heals = append(r.history.Heals, Heal{r.Elapsed(), v})
}

// cleanEnd is the value of End.Error and Connection.Error for a clean end.
const cleanEnd = "EOF"

// endOf returns the End of a session that failed with err.
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
