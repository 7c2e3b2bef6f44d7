package informer

import "github.com/listwatch/listwatch"

// Replace tells the whole state, as a list at version shows it, in one step: what is known or waits and is not in items was deleted, at a
// moment nobody saw. It is the truth also where it is older than what was told before: versions may have begun anew. Of two items with one key
// the later one counts.
func (f *DeltaFIFO[T]) Replace(items []*Item[T], version listwatch.Version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed()
	}
	// Invariant: every key that is known or waits has an entry afterwards, or has none because nobody knows it. So versions of before,
	// which may be of another epoch, are compared with nothing any more.
	f.beginReplace(version)
	f.initial.remaining++ // not over before the end of this
	f.replaceItems(items)
	f.deleteUnseen(version)
	f.initial.remaining--
	f.initial.update()
	f.wake()
	return nil
}

// showAll tells items. Their entries are made at once.
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

// missing returns for how many of items there is no entry, at most.
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

// begin makes version the newest that was told. Where a newer one was told before, it may belong to another epoch, and nothing of that can be
// claimed in this one.
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

// show marks e as one that this Replace has told, with the version that newer changes of it must pass.
func (f *DeltaFIFO[T]) markSeen(e *entry[T], v listwatch.Version) {
	e.lastReplace, e.newest, e.oldest = f.replaces, v, 0
	if !f.initial.done && !e.initial {
		e.initial = true
		f.initial.remaining++
	}
}

// deleteLost deletes what is known or waits and was not shown in this round.
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

// lose deletes what waits in e.
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

// loseKnown deletes what is known and doesn't wait.
func (f *DeltaFIFO[T]) deleteKnown(i *Item[T], version listwatch.Version) {
	if f.queue.get(i.Key) != nil {
		return
	}
	f.markSeen(f.push(entry[T]{deleted: i, finalStateUnknown: true}), version)
}
