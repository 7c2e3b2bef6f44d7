package informer

import "github.com/listwatch/listwatch"

// apply adds one change to the queue. The caller of apply, and of all other methods in this file,
// must hold d.mu.
func (d *DeltaFIFO[T]) apply(change Delta[T]) {
	key, v := change.Item.Key, change.Item.Version
	e := d.queue.get(key)
	if e != nil {
		if d.isDuplicate(v, e.newest) {
			return
		}
		d.coalesce(e, change)
	} else {
		known, seen := d.knownState(key)
		if d.isDuplicate(v, seen) {
			return
		}
		d.applyFirst(change, known)
	}
	d.versions.received = max(d.versions.received, v)
}

// isDuplicate reports whether a change of version v has been received already. seen is the newest
// version that was received for the key of the change.
func (d *DeltaFIFO[T]) isDuplicate(v, seen listwatch.Version) bool {
	return v != 0 && (v <= d.versions.complete || v <= seen)
}

// applyFirst queues the first change of a key that is not queued.
func (d *DeltaFIFO[T]) applyFirst(change Delta[T], known *Item[T]) {
	v := change.Item.Version
	switch {
	case change.Type != DeltaDeleted:
		d.push(entry[T]{item: change.Item, itemType: d.typeOf(change.Type, known), newest: v, oldest: v})
	case known != nil || d.KnownObjects == nil:
		d.push(entry[T]{deleted: change.Item, newest: v, oldest: v})
	}
}

// coalesce merges a change into the queued entry of its key.
func (d *DeltaFIFO[T]) coalesce(e *entry[T], change Delta[T]) {
	switch {
	case change.Type != DeltaDeleted:
		e.put(change.Item)
	case d.isUnknown(e):
		d.discard(e)
		return
	default:
		e.delete(change.Item)
	}
	e.newest = change.Item.Version
}

// isUnknown reports whether the consumer does not know the object that is queued in e. A deletion
// of that object then needs no delta.
func (d *DeltaFIFO[T]) isUnknown(e *entry[T]) bool {
	if e.deleted != nil || d.KnownObjects == nil {
		return false
	}
	known, _ := d.knownState(e.item.Key)
	return known == nil
}

// typeOf returns the type that a received delta has for the consumer. known is the state of
// the object that the consumer knows, or nil if it does not know the object.
func (d *DeltaFIFO[T]) typeOf(received DeltaType, known *Item[T]) DeltaType {
	switch {
	case d.KnownObjects == nil:
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
func (d *DeltaFIFO[T]) knownState(key listwatch.Key) (*Item[T], listwatch.Version) {
	if e := d.handling; e != nil && e.key() == key {
		return e.item, e.newest
	}
	if d.KnownObjects == nil {
		return nil, 0
	}
	i, ok := d.KnownObjects.Item(key)
	switch {
	case !ok:
		return nil, 0
	case i.Version > d.versions.received:
		return i, 0
	}
	return i, i.Version
}

// push appends an entry to the queue.
func (d *DeltaFIFO[T]) push(e entry[T]) *entry[T] {
	p := d.queue.alloc()
	*p = e
	d.queue.push(p.key(), p)
	return p
}

// discard removes an entry whose changes cancel out.
func (d *DeltaFIFO[T]) discard(e *entry[T]) {
	d.queue.remove(e)
	d.countDone(e)
	d.queue.release(e)
}

// countDone updates the progress of the initial list for an entry that was handled or
// discarded.
func (d *DeltaFIFO[T]) countDone(e *entry[T]) {
	if !e.initial {
		return
	}
	d.initial.remaining--
	d.initial.update()
}

func (i *initialList) update() { i.done = i.done || i.remaining <= 0 }

// sync queues the known state of key again, as a DeltaSync. A DeltaSync contains no change, so it
// must not hold back [DeltaFIFO.Version]. Therefore oldest of its entry is greater than every
// version received.
func (d *DeltaFIFO[T]) sync(key listwatch.Key) {
	if d.closed || d.queue.get(key) != nil {
		return
	}
	known, _ := d.knownState(key)
	if known == nil {
		return
	}
	d.push(entry[T]{item: known, itemType: DeltaSync, newest: known.Version, oldest: d.versions.received + 1})
}
