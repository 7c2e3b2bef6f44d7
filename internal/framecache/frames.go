// Package framecache caches encoded events: each event is encoded once per wire form, however
// many streams send it.
//
// The path of a frame:
//
//   - internal/history gives each event that it hands out a [Frames], under a [Budget], by
//     Event.WithFrames.
//   - transport has one Encoder per wire form, and each Encoder has a [Form] of its own.
//   - Encoder.Event looks the Form up in the event's Frames; if it is missing, the Encoder builds
//     the frame and Frames keeps it.
//   - When the event leaves the history, or the Budget is exceeded, the frames are dropped.
//
// Frames are shared and never modified. Dropping a frame drops a reference only: a stream that
// still sends it is not affected.
package framecache

import (
	"sync"
	"sync/atomic"
)

// A Form identifies one wire form: a framing, a content coding, what the transport puts around
// each event, and the representation of objects. Forms are small numbers, valid for the life of
// the process.
type Form uint32

var lastForm atomic.Uint32

// NewForm returns a Form that was never returned before. Call it once per wire form, not once per
// stream.
func NewForm() Form { return Form(lastForm.Add(1)) }

// Frames is the cache of one event: one frame per [Form]. The zero Frames is empty and has no
// budget. A nil Frames caches nothing. Safe for concurrent use.
type Frames struct {
	budget *Budget // immutable; nil if unlimited

	building sync.Mutex            // held while a frame is built, so that concurrent callers build it once
	head     atomic.Pointer[frame] // a list, newest first, or dropped
}

type frame struct {
	form Form
	data []byte
	next *frame
}

// dropped is the head of Frames that keep nothing any more. No Form is zero, so a lookup does not
// find it.
var dropped = new(frame)

// SetBudget makes f count against b. It must be called before the first use of f.
func (f *Frames) SetBudget(b *Budget) { f.budget = b }

// Get returns the frame in form and true, or false if f has none.
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

// GetOrBuild returns the frame in form. If f has none it calls build and keeps the result; an
// error is returned and not kept. Callers on a hot path should try [Frames.Get] first, which
// needs no closure.
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

// Drop empties f for good, because its event has left the history. From now on f builds frames
// and keeps none.
func (f *Frames) Drop() {
	n := f.head.Swap(dropped).size()
	if f.budget != nil && n > 0 {
		f.budget.release(n)
	}
}

// evict empties f, which may be filled again, and returns the bytes freed.
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

// size returns the bytes of the list that begins at n.
func (n *frame) size() (bytes int64) {
	for ; n != nil; n = n.next {
		bytes += int64(len(n.data))
	}
	return bytes
}

// LazyFrames is a place for [Frames] that few of many objects need. The zero LazyFrames is empty.
// Safe for concurrent use.
type LazyFrames struct {
	frames atomic.Pointer[Frames] // apart from the object, which a budget must not keep in memory
}

// Get returns the Frames, which the first call creates under b.
func (l *LazyFrames) Get(b *Budget) *Frames {
	if f := l.frames.Load(); f != nil {
		return f
	}
	l.frames.CompareAndSwap(nil, &Frames{budget: b})
	return l.frames.Load()
}

// Drop drops the Frames for good, if there are any.
func (l *LazyFrames) Drop() {
	if f := l.frames.Load(); f != nil {
		f.Drop()
	}
}
