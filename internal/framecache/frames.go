// Package framecache caches encoded events: each event is encoded once per wire form, however
// many streams send it.
//
// The path of a frame:
//
//   - internal/history attaches [Frames] to each event with Event.WithFrames. A [Budget]
//     limits their size.
//   - transport has one Encoder per wire form, and each Encoder has its own [Form].
//   - Encoder.Event looks up the Form in the event's Frames. If the frame is missing, the
//     Encoder builds it, and Frames keeps it.
//   - The frames are dropped when the event leaves the history, or when the Budget is
//     exceeded.
//
// Frames are shared and never modified. Dropping a frame drops a reference only: a stream that
// still sends it is not affected.
package framecache

import (
	"sync"
	"sync/atomic"
)

// A Form identifies one wire form: a framing, a content coding, the envelope of a
// transport, and a representation of objects. Forms are small numbers that are valid for
// the lifetime of the process.
type Form uint32

var lastForm atomic.Uint32

// NewForm returns a new unique Form. It must be called once per wire form, not once per
// stream.
func NewForm() Form { return Form(lastForm.Add(1)) }

// Frames is the cache of one event. It holds one frame per [Form]. The zero Frames is empty
// and has no budget. A nil Frames caches nothing. Frames is safe for concurrent use.
type Frames struct {
	budget *Budget // immutable; nil if unlimited

	// building is held while a frame is built, so that concurrent callers build the frame once.
	building sync.Mutex
	head     atomic.Pointer[frame] // the newest frame of a list, or the variable dropped
}

type frame struct {
	form Form
	data []byte
	next *frame
}

// dropped is the head of a Frames after Drop, and prevents new frames from being added. Get
// never returns this frame, because its form is zero and NewForm never returns zero.
var dropped = new(frame)

// SetBudget makes f count against b. It must be called before the first use of f.
func (f *Frames) SetBudget(b *Budget) { f.budget = b }

// Get returns the frame in the given form. ok is false if f has none.
func (f *Frames) Get(form Form) ([]byte, bool) {
	if f == nil {
		return nil, false
	}
	for n := f.head.Load(); n != nil; n = n.next {
		if n.form == form {
			return n.data, true
		}
	}
	return nil, false
}

// GetOrBuild returns the frame in the given form. If f has none, GetOrBuild calls build and keeps
// the result. If build returns an error, GetOrBuild returns the error and f keeps nothing. Callers
// on a hot path should try [Frames.Get] first, which needs no closure.
func (f *Frames) GetOrBuild(form Form, build func() ([]byte, error)) ([]byte, error) {
	if f == nil {
		return build()
	}
	f.building.Lock()
	defer f.building.Unlock()
	if data, ok := f.Get(form); ok {
		return data, nil
	}
	data, err := build()
	if err != nil {
		return nil, err
	}
	f.add(&frame{form: form, data: data})
	return data, nil
}

func (f *Frames) add(n *frame) {
	for {
		n.next = f.head.Load()
		if n.next == dropped {
			return
		}
		if f.head.CompareAndSwap(n.next, n) {
			break
		}
	}
	if f.budget != nil {
		f.budget.add(f, len(n.data), n.next == nil)
	}
}

// Drop empties f permanently, because its event has left the history. Afterwards GetOrBuild
// still builds frames, but f does not keep them.
func (f *Frames) Drop() {
	n := f.head.Swap(dropped).size()
	if f.budget != nil && n > 0 {
		f.budget.release(n)
	}
}

// evict empties f and returns the number of bytes freed. f may be filled again.
func (f *Frames) evict() int64 {
	for {
		head := f.head.Load()
		if head == dropped {
			return 0
		}
		if f.head.CompareAndSwap(head, nil) {
			return head.size()
		}
	}
}

// isEmpty reports whether f keeps no frame.
func (f *Frames) isEmpty() bool {
	head := f.head.Load()
	return head == nil || head == dropped
}

// size returns the number of bytes in the list that begins at n.
func (n *frame) size() (bytes int64) {
	for ; n != nil; n = n.next {
		bytes += int64(len(n.data))
	}
	return bytes
}

// LazyFrames holds the [Frames] of an object. Most objects never need Frames, so they are
// only allocated by the first Get. The zero LazyFrames is empty. It is safe for concurrent
// use.
type LazyFrames struct {
	frames atomic.Pointer[Frames] // a pointer, so that a Budget does not keep the object in memory
}

// Get returns the Frames. The first call creates them with the budget b.
func (l *LazyFrames) Get(b *Budget) *Frames {
	if f := l.frames.Load(); f != nil {
		return f
	}
	l.frames.CompareAndSwap(nil, &Frames{budget: b})
	return l.frames.Load()
}

// Drop drops the Frames permanently, if there are any.
func (l *LazyFrames) Drop() {
	if f := l.frames.Load(); f != nil {
		f.Drop()
	}
}
