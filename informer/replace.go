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
	f.begin(version)
	f.first.left++ // not over before the end of this
	f.showAll(items)
	f.deleteLost(version)
	f.first.left--
	f.first.check()
	f.wake()
	return nil
}

// showAll tells items. Their entries are made at once.
func (f *DeltaFIFO[T]) showAll(items []*Item[T]) {
	slab := make([]entry[T], f.missing(items))
	f.queue.expect(len(slab))
	for _, i := range items {
		e := f.queue.get(i.Key)
		if e == nil {
			e, slab = &slab[0], slab[1:]
			e.slab = true
			f.queue.push(i.Key, e)
		}
		e.item, e.kind = i, DeltaReplaced
		f.show(e, i.Version)
	}
}

// missing returns for how many of items there is no entry, at most.
func (f *DeltaFIFO[T]) missing(items []*Item[T]) int {
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
func (f *DeltaFIFO[T]) begin(version listwatch.Version) {
	f.claim()
	if f.claims.told > version {
		f.claims.handled = 0
	}
	f.claims.told, f.claims.floor = version, version
	f.round++
	if f.current != nil {
		f.current.since, f.current.version = 0, 0
	}
}

// show marks e as one that this Replace has told, with the version that newer changes of it must pass.
func (f *DeltaFIFO[T]) show(e *entry[T], v listwatch.Version) {
	e.round, e.version, e.since = f.round, v, 0
	if !f.first.over && !e.initial {
		e.initial = true
		f.first.left++
	}
}

// deleteLost deletes what is known or waits and was not shown in this round.
func (f *DeltaFIFO[T]) deleteLost(version listwatch.Version) {
	for e := f.queue.head; e != nil; {
		next := e.next
		if e.round != f.round {
			f.lose(e, version)
		}
		e = next
	}
	if f.current != nil && f.current.item != nil {
		f.loseKnown(f.current.item, version)
	}
	if f.KnownObjects == nil {
		return
	}
	for i := range f.KnownObjects.Items() {
		if f.current == nil || i.Key != f.current.key() {
			f.loseKnown(i, version)
		}
	}
}

// lose deletes what waits in e.
func (f *DeltaFIFO[T]) lose(e *entry[T], version listwatch.Version) {
	if f.isNews(e) {
		f.drop(e)
		return
	}
	if e.gone == nil {
		e.gone, e.unknownState = e.item, true
	}
	e.item = nil
	f.show(e, version)
}

// loseKnown deletes what is known and doesn't wait.
func (f *DeltaFIFO[T]) loseKnown(i *Item[T], version listwatch.Version) {
	if f.queue.get(i.Key) != nil {
		return
	}
	f.show(f.push(entry[T]{gone: i, unknownState: true}), version)
}
