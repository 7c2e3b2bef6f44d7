package history

import (
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// caches holds the frames of a log.
type caches struct {
	records *frames.Budget // limits the frames of retained records
	initial initialFrames
}

// newCaches returns caches with limit bytes for records, and another limit bytes for initial
// events.
func newCaches(limit int64) caches {
	return caches{records: frames.NewBudget(limit), initial: initialFrames{budget: frames.NewBudget(limit)}}
}

// bytes returns the bytes of all cached frames.
func (c *caches) bytes() int64 { return c.records.Used() + c.initial.budget.Used() }

// built returns the number of frames that were ever cached.
func (c *caches) built() uint64 { return c.records.Added() + c.initial.budget.Added() }

// initialFrames caches the frames of initial events. An object gets an entry when a watcher first
// reads it as an initial event. The entry is dropped together with the record that replaced the
// object.
type initialFrames struct {
	budget *frames.Budget // immutable

	mu sync.RWMutex // may be acquired while Log.mu is held
	// Guarded by mu. Only the holder of Log.mu changes it.
	byObject map[*listwatch.Object]*frames.Frames
}

// lookup sets refs to the frames of events, which must be initial events. It returns false if an
// event has no entry.
func (i *initialFrames) lookup(events []listwatch.Event, refs []frames.Ref) (complete bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	complete = true
	for n := range events {
		entry := i.byObject[events[n].Object]
		refs[n] = frames.Ref{Frames: entry}
		complete = complete && entry != nil
	}
	return complete
}

// add adds entries for events that have none. An object that is no longer in the state t gets no
// entry, because the entry might never be dropped. Log.mu must be held.
func (i *initialFrames) add(t tree, events []listwatch.Event, refs []frames.Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byObject == nil {
		i.byObject = make(map[*listwatch.Object]*frames.Frames)
	}
	for n := range events {
		o := events[n].Object
		entry := i.byObject[o]
		if current, _ := t.Get(o); entry == nil && current == o {
			entry = frames.New(i.budget)
			i.byObject[o] = entry
		}
		refs[n] = frames.Ref{Frames: entry}
	}
}

// drop drops the frames of o, which may be nil. Log.mu must be held.
func (i *initialFrames) drop(o *listwatch.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if entry := i.byObject[o]; entry != nil {
		entry.Drop()
		delete(i.byObject, o)
	}
}

// retain drops the frames of all objects that are not in t. Log.mu must be held.
func (i *initialFrames) retain(t tree) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for o, entry := range i.byObject {
		if kept, _ := t.Get(o); kept != o {
			entry.Drop()
			delete(i.byObject, o)
		}
	}
}
