// Package frames caches encoded events: each event is encoded once per wire form, however many
// streams send it.
//
// The path of a frame:
//
//   - internal/history keeps [Frames] for each event, and hands out a [Ref] to them next to the
//     event. A [Budget] limits their size.
//   - internal/wire looks up its [Form] in the Frames of the Ref. If the frame is missing, wire
//     builds it, and Frames keeps it.
//   - The frames are dropped when the event leaves the history, or when the Budget is
//     exceeded.
//
// Frames are shared and never modified. Dropping a frame drops a reference only: a stream that
// still sends it is not affected.
package frames

import (
	"sync"
	"sync/atomic"
	"unique"
)

// A Form identifies a wire form: a framing, a content coding, the envelope of a transport, and a
// representation of objects. Equal forms have equal handles. The runtime forgets a form when no
// handle is left.
type Form = unique.Handle[any]

// Frames is the cache of one event. It holds one frame per [Form]. The zero Frames is empty
// and has no budget. A nil Frames caches nothing. Frames is safe for concurrent use.
type Frames struct {
	budget *Budget // immutable; nil if unlimited

	// building is held while a frame is built, so that concurrent callers build the frame once.
	building sync.Mutex
	head     atomic.Pointer[frame] // the newest frame of a list, or dropped
}

type frame struct {
	form Form
	data []byte
	next *frame
}

// dropped is the head of a Frames after Drop, and prevents new frames from being added. Get
// never returns this frame, because its form is the zero handle.
var dropped = new(frame)

// New returns empty Frames that count against b.
func New(b *Budget) *Frames { return &Frames{budget: b} }

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

// size returns the number of bytes in the list that begins at f.
func (f *frame) size() (bytes int64) {
	for ; f != nil; f = f.next {
		bytes += int64(len(f.data))
	}
	return bytes
}

// A Budget limits the total bytes that many [Frames] keep. When the limit is exceeded, it
// empties the Frames that were filled first. It is safe for concurrent use.
type Budget struct {
	max int64

	mu sync.Mutex
	// Guarded by mu.
	added uint64    // the number of frames ever added
	used  int64     // the bytes kept; may be inexact while a frame is added or dropped
	queue []*Frames // in the order in which they were filled; the entries of queue[:head] are nil
	head  int
	empty int // approximate number of entries that Drop has emptied
}

// NewBudget returns a Budget of max bytes. If max is zero, no frame is kept. A negative max
// means no limit.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Used returns the bytes kept now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Added returns the number of frames that were ever added.
func (b *Budget) Added() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.added
}

// release subtracts n bytes of Frames that were dropped.
func (b *Budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.empty++
	if b.empty > 64 && b.empty > (len(b.queue)-b.head)/2 {
		b.compact()
	}
}

// compact removes empty Frames from the queue, because an entry of the queue keeps its
// event in memory.
func (b *Budget) compact() {
	var kept []*Frames
	for _, f := range b.queue[b.head:] {
		if !f.isEmpty() {
			kept = append(kept, f)
		}
	}
	b.queue, b.head, b.empty = kept, 0, 0
}

// add counts n bytes that f now keeps. first is true if f was empty before.
func (b *Budget) add(f *Frames, n int, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += int64(n)
	b.added++
	if b.max < 0 {
		return
	}
	if first {
		b.queue = append(b.queue, f)
	}
	for b.used > b.max && b.head < len(b.queue) {
		b.used -= b.queue[b.head].evict()
		b.queue[b.head] = nil
		b.head++
	}
	if b.head > 64 && b.head > len(b.queue)/2 {
		b.compact()
	}
}
