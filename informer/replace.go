package informer

import "github.com/listwatch/listwatch"

// Replace queues a whole state in one step: the items that a list has returned, and the version of
// that list. It queues a deletion for every known or queued object that items does not contain. The
// list replaces earlier changes even if they are newer than the list, because the versions of the
// source may have started over (a new epoch). If two items have the same key, the later one is
// used.
func (f *DeltaFIFO[T]) Replace(items []*Item[T], version listwatch.Version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed()
	}
	// Invariant: afterwards, every key that the consumer knows or the list contains has an
	// entry. The versions in these entries come from this list, so the versions of later
	// changes are never compared with versions from before this call, which may belong to
	// another epoch.
	f.beginReplace(version)
	// Count one more key, so that the initial list cannot be done before all items are queued.
	f.initial.remaining++
	f.replaceItems(items)
	f.deleteUnseen(version)
	f.initial.remaining--
	f.initial.update()
	f.wake()
	return nil
}

// replaceItems queues items. The new entries are allocated together.
func (f *DeltaFIFO[T]) replaceItems(items []*Item[T]) {
	slab := make([]entry[T], f.countWithoutEntry(items))
	f.queue.reserve(len(slab))
	for _, i := range items {
		e := f.queue.get(i.Key)
		if e == nil {
			e, slab = &slab[0], slab[1:]
			e.fromSlab = true
			f.queue.push(i.Key, e)
		}
		e.item, e.itemType = i, DeltaReplaced
		f.markSeen(e, i.Version)
	}
}

// countWithoutEntry returns an upper bound on the number of items without an entry.
func (f *DeltaFIFO[T]) countWithoutEntry(items []*Item[T]) int {
	n := len(items)
	if f.queue.len() > 0 {
		n = 0
		for _, i := range items {
			if f.queue.get(i.Key) == nil {
				n++
			}
		}
	}
	return n
}

// beginReplace sets the newest received version. If version is lower than before, a new epoch
// may have started, in which no version has been handled yet.
func (f *DeltaFIFO[T]) beginReplace(version listwatch.Version) {
	f.handledVersion()
	if f.versions.received > version {
		f.versions.handled = 0
	}
	f.versions.received, f.versions.complete = version, version
	f.replaces++
	if f.handling != nil {
		f.handling.oldest, f.handling.newest = 0, 0
	}
}

// markSeen marks e as part of the current Replace. Later changes of its key must be newer
// than v.
func (f *DeltaFIFO[T]) markSeen(e *entry[T], v listwatch.Version) {
	e.lastReplace, e.newest, e.oldest = f.replaces, v, 0
	if !f.initial.done && !e.initial {
		e.initial = true
		f.initial.remaining++
	}
}

// deleteUnseen queues deletions for all known or queued objects that the current Replace
// does not contain.
func (f *DeltaFIFO[T]) deleteUnseen(version listwatch.Version) {
	for e := f.queue.head; e != nil; {
		next := e.next
		if e.lastReplace != f.replaces {
			f.deleteQueued(e, version)
		}
		e = next
	}
	if f.handling != nil && f.handling.item != nil {
		f.deleteKnown(f.handling.item, version)
	}
	if f.KnownObjects == nil {
		return
	}
	for i := range f.KnownObjects.Items() {
		if f.handling == nil || i.Key != f.handling.key() {
			f.deleteKnown(i, version)
		}
	}
}

// deleteQueued changes a queued entry into a deletion.
func (f *DeltaFIFO[T]) deleteQueued(e *entry[T], version listwatch.Version) {
	if f.isUnknown(e) {
		f.discard(e)
		return
	}
	if e.deleted == nil {
		e.deleted, e.finalStateUnknown = e.item, true
	}
	e.item = nil
	f.markSeen(e, version)
}

// deleteKnown queues the deletion of the known object i, unless its key is queued.
func (f *DeltaFIFO[T]) deleteKnown(i *Item[T], version listwatch.Version) {
	if f.queue.get(i.Key) != nil {
		return
	}
	f.markSeen(f.push(entry[T]{deleted: i, finalStateUnknown: true}), version)
}
