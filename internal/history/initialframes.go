package history

import (
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// initialFrames caches the frames of initial events. It has an entry for each object that a watcher
// has shown since the object was written, until the record that replaced the object is dropped.
type initialFrames struct {
	budget *frames.Budget // immutable

	mu sync.RWMutex // may be acquired while Log.mu is held
	// Guarded by mu. Only the holder of Log.mu changes it.
	byObject map[*listwatch.Object]*frames.Frames
}

// lookup sets refs to the frames of events, which are initial events. It returns false if an event
// has no entry.
func (f *initialFrames) lookup(events []listwatch.Event, refs []frames.Ref) (complete bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	complete = true
	for i := range events {
		entry := f.byObject[events[i].Object]
		refs[i] = frames.Ref{Frames: entry}
		complete = complete && entry != nil
	}
	return complete
}

// add adds entries for events that have none. An object that is no longer in the state t gets no
// entry, because the entry might never be dropped. Log.mu must be held.
func (f *initialFrames) add(t tree, events []listwatch.Event, refs []frames.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byObject == nil {
		f.byObject = make(map[*listwatch.Object]*frames.Frames)
	}
	for i := range events {
		o := events[i].Object
		entry := f.byObject[o]
		if current, _ := t.Get(o); entry == nil && current == o {
			entry = frames.New(f.budget)
			f.byObject[o] = entry
		}
		refs[i] = frames.Ref{Frames: entry}
	}
}

// drop drops the frames of o, which may be nil. Log.mu must be held.
func (f *initialFrames) drop(o *listwatch.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if entry := f.byObject[o]; entry != nil {
		entry.Drop()
		delete(f.byObject, o)
	}
}

// retain drops the frames of all objects that are not in t. Log.mu must be held.
func (f *initialFrames) retain(t tree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o, entry := range f.byObject {
		if kept, _ := t.Get(o); kept != o {
			entry.Drop()
			delete(f.byObject, o)
		}
	}
}

// initialRefs sets refs to the frames of events, which are initial events.
func (l *Log) initialRefs(events []listwatch.Event, refs []frames.Ref) {
	if l.initial.lookup(events, refs) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.initial.add(l.state.tree, events, refs)
}
