package informer

import "github.com/listwatch/listwatch"

// Replace queues a whole state in one step: the items that a list has returned, and the version of
// that list. It queues a deletion for every known or queued object that items does not contain. The
// list replaces earlier changes even if they are newer than the list, because the versions of the
// source may have started over (a new epoch). If two items have the same key, the later one is
// used.
func (d *DeltaFIFO[T]) Replace(items []*Item[T], version listwatch.Version) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed()
	}
	// Invariant: afterwards, every key that the consumer knows or the list contains has an
	// entry. The versions in these entries come from this list, so the versions of later
	// changes are never compared with versions from before this call, which may belong to
	// another epoch.
	d.beginReplace(version)
	// Count one more key, so that the initial list cannot be done before all items are queued.
	d.initial.remaining++
	d.replaceItems(items)
	d.deleteUnseen(version)
	d.initial.remaining--
	d.initial.update()
	d.wake()
	return nil
}

// Patch queues the difference to the state that the queue has received, in one step: the items that
// were created or changed, the keys that are gone, and the version of the new state. If an item is
// not newer than the queued or known state of its key, nothing has changed for the consumer.
func (d *DeltaFIFO[T]) Patch(items []*Item[T], gone []listwatch.Key, version listwatch.Version) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed()
	}
	// The entries get no version, as in Replace: the items are not in the order of their versions,
	// so the version of the queue must not advance before all of them were handled.
	d.handledVersion()
	d.replaces++
	d.initial.remaining++
	d.replaceItems(items)
	for _, key := range gone {
		d.deleteGone(key, version)
	}
	d.initial.remaining--
	d.initial.update()
	d.versions.received = max(d.versions.received, version)
	d.versions.complete = max(d.versions.complete, version)
	d.wake()
	return nil
}

// deleteGone queues the deletion of key, unless the current Patch contains an item of that key.
func (d *DeltaFIFO[T]) deleteGone(key listwatch.Key, version listwatch.Version) {
	if e := d.queue.get(key); e != nil {
		if e.lastReplace != d.replaces {
			d.deleteQueued(e, version)
		}
		return
	}
	if known, _ := d.knownState(key); known != nil {
		d.deleteKnown(known, version)
	}
}

// replaceItems queues items. The new entries are allocated together.
func (d *DeltaFIFO[T]) replaceItems(items []*Item[T]) {
	slab := make([]entry[T], d.countWithoutEntry(items))
	d.queue.reserve(len(slab))
	for _, i := range items {
		e := d.queue.get(i.Key)
		if e == nil {
			e, slab = &slab[0], slab[1:]
			e.fromSlab = true
			d.queue.push(i.Key, e)
		}
		e.item, e.itemType = i, DeltaReplaced
		d.markSeen(e, i.Version)
	}
}

// countWithoutEntry returns an upper bound on the number of items without an entry.
func (d *DeltaFIFO[T]) countWithoutEntry(items []*Item[T]) int {
	n := len(items)
	if d.queue.len() > 0 {
		n = 0
		for _, i := range items {
			if d.queue.get(i.Key) == nil {
				n++
			}
		}
	}
	return n
}

// beginReplace sets the newest received version. If version is lower than before, a new epoch
// may have started, in which no version has been handled yet.
func (d *DeltaFIFO[T]) beginReplace(version listwatch.Version) {
	d.handledVersion()
	if d.versions.received > version {
		d.versions.handled = 0
		d.versions.restarts++
	}
	d.versions.received, d.versions.complete = version, version
	d.replaces++
	if d.handling != nil {
		d.handling.oldest, d.handling.newest = 0, 0
	}
}

// markSeen marks e as part of the current Replace or Patch. Later changes of its key must be newer
// than v.
func (d *DeltaFIFO[T]) markSeen(e *entry[T], v listwatch.Version) {
	e.lastReplace, e.newest, e.oldest = d.replaces, v, 0
	if !d.initial.done && !e.initial {
		e.initial = true
		d.initial.remaining++
	}
}

// deleteUnseen queues deletions for all known or queued objects that the current Replace
// does not contain.
func (d *DeltaFIFO[T]) deleteUnseen(version listwatch.Version) {
	for e := d.queue.head; e != nil; {
		next := e.next
		if e.lastReplace != d.replaces {
			d.deleteQueued(e, version)
		}
		e = next
	}
	if d.handling != nil && d.handling.item != nil {
		d.deleteKnown(d.handling.item, version)
	}
	if d.KnownObjects == nil {
		return
	}
	for i := range d.KnownObjects.Items() {
		if d.handling == nil || i.Key != d.handling.key() {
			d.deleteKnown(i, version)
		}
	}
}

// deleteQueued changes a queued entry into a deletion.
func (d *DeltaFIFO[T]) deleteQueued(e *entry[T], version listwatch.Version) {
	if d.isUnknown(e) {
		d.discard(e)
		return
	}
	if e.deleted == nil {
		e.deleted, e.finalStateUnknown = e.item, true
	}
	e.item = nil
	d.markSeen(e, version)
}

// deleteKnown queues the deletion of the known object i, unless its key is queued.
func (d *DeltaFIFO[T]) deleteKnown(i *Item[T], version listwatch.Version) {
	if d.queue.get(i.Key) != nil {
		return
	}
	d.markSeen(d.push(entry[T]{deleted: i, finalStateUnknown: true}), version)
}
