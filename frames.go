package listwatch

import (
	"sync"
	"sync/atomic"
)

// A Form names one way in which an event is spelled on the wire: a framing and what the transport puts around its frames.
// Forms are small numbers given out by [NewForm] for the life of the process.
type Form uint32

var lastForm atomic.Uint32

// NewForm returns a Form that nobody else has. Call it once for each way of encoding, not once a stream.
func NewForm() Form { return Form(lastForm.Add(1)) }

// Frames keeps the encoded frames of one event, one for each [Form]. The zero value is empty and ready. Safe for concurrent use.
type Frames struct {
	mu   sync.Mutex            // held while a frame is built, so that it is built once
	head atomic.Pointer[frame] // a list, newest first; changed by compare-and-swap alone
	dead atomic.Bool           // dropped for good: what is built from now on is not kept
}

type frame struct {
	form Form
	data []byte
	next *frame
}

func (f *Frames) find(form Form) *frame {
	for n := f.head.Load(); n != nil; n = n.next {
		if n.form == form {
			return n
		}
	}
	return nil
}

func (f *Frames) get(form Form, e Event, build func([]byte, Event) ([]byte, error)) ([]byte, error) {
	if n := f.find(form); n != nil {
		return n.data, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.find(form); n != nil {
		return n.data, nil
	}
	data, err := build(nil, e)
	if err != nil {
		return nil, err
	}
	if f.dead.Load() {
		return data, nil
	}
	n := &frame{form: form, data: data}
	for {
		n.next = f.head.Load()
		if f.head.CompareAndSwap(n.next, n) {
			break
		}
	}
	if e.budget != nil {
		e.budget.add(f, len(data), n.next == nil)
		if f.dead.Load() {
			e.budget.Drop(f) // it was dropped while this frame was on its way in
		}
	}
	return data, nil
}

// drop forgets all frames and returns how many bytes they held. Readers that have a frame keep it: dropping drops a reference.
func (f *Frames) drop() int64 {
	var n int64
	for d := f.head.Swap(nil); d != nil; d = d.next {
		n += int64(len(d.data))
	}
	return n
}

// A FrameBudget bounds the bytes that many [Frames] keep together: when it is exceeded, those that began to keep something
// first are emptied. Safe for concurrent use.
type FrameBudget struct {
	max int64

	mu sync.Mutex
	// Guarded by mu.
	used  int64     // the bytes kept, or a little less for the moment between a store and its add
	queue []*Frames // in order of first use; those of queue[:head] are done with
	head  int
	empty int // how many in the queue were emptied by Drop, about
}

// NewFrameBudget returns a budget of max bytes. Zero keeps nothing for longer than the next frame; negative is unlimited.
func NewFrameBudget(max int64) *FrameBudget { return &FrameBudget{max: max} }

// Used returns the bytes kept now.
func (b *FrameBudget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Drop empties f for good, because its event has left the history. Who still has the event builds its frames for himself.
func (b *FrameBudget) Drop(f *Frames) {
	f.dead.Store(true)
	n := f.drop()
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.empty++
	if b.empty > 64 && b.empty > (len(b.queue)-b.head)/2 {
		b.compact()
	}
}

// compact takes the emptied Frames out of the queue: each is part of an event, which it would keep in memory.
func (b *FrameBudget) compact() {
	var kept []*Frames
	for _, f := range b.queue[b.head:] {
		if f.head.Load() != nil {
			kept = append(kept, f)
		}
	}
	b.queue, b.head, b.empty = kept, 0, 0
}

// add counts n bytes that f has come to keep; first says that f was empty before.
func (b *FrameBudget) add(f *Frames, n int, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += int64(n)
	if b.max < 0 {
		return
	}
	if first {
		b.queue = append(b.queue, f)
	}
	for b.used > b.max && b.head < len(b.queue) {
		b.used -= b.queue[b.head].drop()
		b.queue[b.head] = nil
		b.head++
	}
	if b.head > 64 && b.head > len(b.queue)/2 {
		b.compact()
	}
}
