package informer

import "github.com/listwatch/listwatch"

// apply folds one change into the queue. mu is held.
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

// repeated reports whether a change of version v has been told before; seen is the last one of its key.
func (f *DeltaFIFO[T]) isDuplicate(v, seen listwatch.Version) bool {
	return v != 0 && (v <= f.versions.complete || v <= seen)
}

// begins takes in the first change of a key that does not wait.
func (f *DeltaFIFO[T]) applyFirst(d Delta[T], known *Item[T]) {
	v := d.Item.Version
	switch {
	case d.Type != DeltaDeleted:
		f.push(entry[T]{item: d.Item, itemType: f.typeOf(d.Type, known), newest: v, oldest: v})
	case known != nil || f.KnownObjects == nil:
		f.push(entry[T]{deleted: d.Item, newest: v, oldest: v})
	}
}

// fold takes a change into the entry that waits for its key.
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

// isNews reports whether nobody knows the object that waits in e: then nobody need know that it is gone.
func (f *DeltaFIFO[T]) isUnknown(e *entry[T]) bool {
	if e.deleted != nil || f.KnownObjects == nil {
		return false
	}
	known, _ := f.knownState(e.item.Key)
	return known == nil
}

// kind returns what a change is to who knows known.
func (f *DeltaFIFO[T]) typeOf(told DeltaType, known *Item[T]) DeltaType {
	switch {
	case f.KnownObjects == nil:
		return told
	case known == nil:
		return DeltaAdded
	}
	return DeltaUpdated
}

// put folds a newer state into e.
func (e *entry[T]) put(item *Item[T]) {
	switch {
	case e.item == nil:
		e.itemType = DeltaAdded // another object of the same name
	case e.itemType == DeltaSync:
		e.itemType = DeltaUpdated
	}
	e.item = item
}

// delete folds a deletion into e. The object that is known was deleted first: where e says so already, what came after it was never seen.
func (e *entry[T]) delete(item *Item[T]) {
	if e.deleted == nil || e.finalStateUnknown && e.item == nil {
		e.deleted, e.finalStateUnknown = item, false
	}
	e.item = nil
}

// known returns what the consumer will know of key when it is done with what it handles now, and the version of the last change of key that
// it has been given; that is zero where the version is of another epoch.
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

// push appends an entry.
func (f *DeltaFIFO[T]) push(e entry[T]) *entry[T] {
	p := f.queue.alloc()
	*p = e
	f.queue.push(p.key(), p)
	return p
}

// drop removes an entry of which nothing is left.
func (f *DeltaFIFO[T]) discard(e *entry[T]) {
	f.queue.remove(e)
	f.countDone(e)
	f.queue.release(e)
}

// leave counts an entry that has been handled or dropped.
func (f *DeltaFIFO[T]) countDone(e *entry[T]) {
	if !e.initial {
		return
	}
	f.initial.remaining--
	f.initial.update()
}

func (b *initialList) update() {
	if b.done || b.remaining > 0 {
		return
	}
	b.done = true
	if b.doneChan != nil {
		close(b.doneChan)
	}
}

// sync tells what is known of key again. It is no news, so it does not hold back the version.
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
