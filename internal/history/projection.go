package history

import (
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// reductions has the values that all reductions of a feed share. It is immutable.
type reductions struct {
	budget *frames.Budget // limits the frames
	memory *atomic.Int64  // counts the objects
}

// A reduction is the object of a node as the projection of its feed shows it. The first reader
// builds it, and all readers of the feed share it and its frames.
type reduction struct {
	of     *reductions // immutable
	frames frames.Frames

	mu sync.Mutex
	// Guarded by mu.
	object  *listwatch.Object // nil if it was not built or was dropped
	dropped bool
}

func (r *reductions) add() *reduction {
	added := &reduction{of: r}
	added.frames.SetBudget(r.budget)
	return added
}

// get returns the object of a node of f. of is the record of the node, and t the type of the event.
// After drop, get returns an object that the reduction does not keep.
func (r *reduction) get(f *feed, of *record, t listwatch.EventType) *listwatch.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.object != nil {
		return r.object
	}
	o := f.shown(of, t)
	if !r.dropped {
		r.object = o
		r.of.memory.Add(reductionMemory(o))
	}
	return o
}

// drop drops the object and its frames permanently, because the node was dropped.
func (r *reduction) drop() {
	r.frames.Drop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped = true; r.object != nil {
		r.of.memory.Add(-reductionMemory(r.object))
		r.object = nil
	}
}

// reductionMemory estimates the memory of a reduction with the object o.
func reductionMemory(o *listwatch.Object) int64 {
	return 2*objectBytes + dataBytes(o)
}

// shown returns the object of the event of type t that r causes in f.
func (f *feed) shown(r *record, t listwatch.EventType) *listwatch.Object {
	switch d, p := &f.log.description, f.selection.Projection; {
	case t != listwatch.Deleted:
		return p.Reduce(r.New)
	case p.Empty():
		return r.lastState(d)
	default:
		return d.At(p.Reduce(r.Old), r.Version)
	}
}

// drop drops what the log has cached for n.
func (n *node) drop() {
	n.segments.Drop()
	if n.reduction != nil {
		n.reduction.drop()
	}
}

// countIn makes memory count the reduced objects of c. It is called before the first append.
func (c *chain) countIn(memory *atomic.Int64) {
	if c.reductions != nil {
		c.reductions.memory = memory
	}
}
