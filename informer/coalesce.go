package informer

import "github.com/listwatch/listwatch"

// apply adds one change to the queue. The caller of apply, and of all other methods in this file,
// must hold f.mu.
func (f *DeltaFIFO[T]) apply(d Delta[T]) {
	key, v := d.Item.Key, d.Item.Version
	e := f.queue.get(key)
	if e != nil {
		if f.isDuplicate(v, e.newest) {
			return
		}
		f.coalesce(e, d)
	} else {
		known, seen := f.knownState(key)
		if f.isDuplicate(v, seen) {
			return
		}
		f.applyFirst(d, known)
	}
	f.versions.received = max(f.versions.received, v)
}

// isDuplicate reports whether a change of version v has been received already. seen is the newest
// version that was received for the key of the change.
func (f *DeltaFIFO[T]) isDuplicate(v, seen listwatch.Version) bool {
	return v != 0 && (v <= f.versions.complete || v <= seen)
}

// applyFirst queues the first change of a key that is not queued.
func (f *DeltaFIFO[T]) applyFirst(d Delta[T], known *Item[T]) {
	v := d.Item.Version
	switch {
	case d.Type != DeltaDeleted:
		f.push(entry[T]{item: d.Item, itemType: f.typeOf(d.Type, known), newest: v, oldest: v})
	case known != nil || f.KnownObjects == nil:
		f.push(entry[T]{deleted: d.Item, newest: v, oldest: v})
	}
}

// coalesce merges a change into the queued entry of its key.
func (f *DeltaFIFO[T]) coalesce(e *entry[T], d Delta[T]) {
	switch {
	case d.Type != DeltaDeleted:
		e.put(d.Item)
	case f.isUnknown(e):
		f.discard(e)
		return
	default:
		e.delete(d.Item)
	}
	e.newest = d.Item.Version
}

// isUnknown reports whether the consumer does not know the object that is queued in e. A deletion
// of that object then needs no delta.
func (f *DeltaFIFO[T]) isUnknown(e *entry[T]) bool {
	if e.deleted != nil || f.KnownObjects == nil {
		return false
	}
	known, _ := f.knownState(e.item.Key)
	return known == nil
}

// typeOf returns the type that a received delta has for the consumer. known is the state of
// the object that the consumer knows, or nil if it does not know the object.
func (f *DeltaFIFO[T]) typeOf(received DeltaType, known *Item[T]) DeltaType {
	switch {
	case f.KnownObjects == nil:
		return received
	case known == nil:
		return DeltaAdded
	}
	return DeltaUpdated
}

// put merges a newer state into e.
func (e *entry[T]) put(item *Item[T]) {
	switch {
	case e.item == nil:
		// The queued deletion is followed by a new object of the same name.
		e.itemType = DeltaAdded
	case e.itemType == DeltaSync:
		e.itemType = DeltaUpdated
	}
	e.item = item
}

// delete merges a deletion into e. If e already holds the deletion of the object that the consumer
// knows, that deletion is kept, because the consumer never saw the later object. But if e holds
// only a deletion that was inferred from a list, the received deletion replaces the inferred one.
func (e *entry[T]) delete(item *Item[T]) {
	if e.deleted == nil || e.finalStateUnknown && e.item == nil {
		e.deleted, e.finalStateUnknown = item, false
	}
	e.item = nil
}

// knownState returns the state of key that the consumer will know after it has handled the current
// entry, and the version of the newest change of key that was delivered to the consumer. The
// returned version is zero if the known state belongs to another epoch, because versions of
// different epochs cannot be compared.
func (f *DeltaFIFO[T]) knownState(key listwatch.Key) (*Item[T], listwatch.Version) {
	if e := f.handling; e != nil && e.key() == key {
		return e.item, e.newest
	}
	if f.KnownObjects == nil {
		return nil, 0
	}
	i, ok := f.KnownObjects.Item(key)
	switch {
	case !ok:
		return nil, 0
	case i.Version > f.versions.received:
		return i, 0
	}
	return i, i.Version
}

// push appends an entry to the queue.
func (f *DeltaFIFO[T]) push(e entry[T]) *entry[T] {
	p := f.queue.alloc()
	*p = e
	f.queue.push(p.key(), p)
	return p
}

// discard removes an entry whose changes cancel out.
func (f *DeltaFIFO[T]) discard(e *entry[T]) {
	f.queue.remove(e)
	f.countDone(e)
	f.queue.release(e)
}

// countDone updates the progress of the initial list for an entry that was handled or
// discarded.
func (f *DeltaFIFO[T]) countDone(e *entry[T]) {
	if !e.initial {
		return
	}
	f.initial.remaining--
	f.initial.update()
}

func (l *initialList) update() {
	if l.done || l.remaining > 0 {
		return
	}
	l.done = true
	if l.doneChan != nil {
		close(l.doneChan)
	}
}

// sync queues the known state of key again, as a DeltaSync. A DeltaSync contains no change, so it
// must not hold back [DeltaFIFO.Version]. Therefore the field oldest of its entry is greater than
// every version received.
func (f *DeltaFIFO[T]) sync(key listwatch.Key) {
	if f.closed || f.queue.get(key) != nil {
		return
	}
	known, _ := f.knownState(key)
	if known == nil {
		return
	}
	f.push(entry[T]{item: known, itemType: DeltaSync, newest: known.Version, oldest: f.versions.received + 1})
}
