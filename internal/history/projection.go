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

// get returns the object of a node of the feed with the selection s. of is the record of the node,
// and t the type of the event. After drop, get returns an object that the reduction does not keep.
func (r *reduction) get(s *selection, of *record, t listwatch.EventType) *listwatch.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.object != nil {
		return r.object
	}
	o := s.reduce(of, t)
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

// reduce returns the object of the event of type t that r causes in s.
func (s *selection) reduce(r *record, t listwatch.EventType) *listwatch.Object {
	if s.Projection.Empty() {
		return r.shown(t)
	}
	if t == listwatch.Deleted {
		return s.Projection.Reduce(r.Old).At(r.Version)
	}
	return s.Projection.Reduce(r.New)
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
