package informer

import "github.com/listwatch/listwatch"

// apply folds one change into the queue. mu is held.
func (f *DeltaFIFO[T]) apply(d Delta[T]) {
	key, v := d.Item.Key, d.Item.Version
	e := f.queue.get(key)
	if e != nil {
		if f.repeated(v, e.version) {
			return
		}
		f.fold(e, d)
	} else {
		known, seen := f.known(key)
		if f.repeated(v, seen) {
			return
		}
		f.begins(d, known)
	}
	f.claims.told = max(f.claims.told, v)
}

// repeated reports whether a change of version v has been told before; seen is the last one of its key.
func (f *DeltaFIFO[T]) repeated(v, seen listwatch.Version) bool {
	return v != 0 && (v <= f.claims.floor || v <= seen)
}

// begins takes in the first change of a key that does not wait.
func (f *DeltaFIFO[T]) begins(d Delta[T], known *Item[T]) {
	v := d.Item.Version
	switch {
	case d.Type != DeltaDeleted:
		f.push(entry[T]{item: d.Item, kind: f.kind(d.Type, known), version: v, since: v})
	case known != nil || f.KnownObjects == nil:
		f.push(entry[T]{gone: d.Item, version: v, since: v})
	}
}

// fold takes a change into the entry that waits for its key.
func (f *DeltaFIFO[T]) fold(e *entry[T], d Delta[T]) {
	switch {
	case d.Type != DeltaDeleted:
		e.put(d.Item)
	case f.isNews(e):
		f.drop(e)
		return
	default:
		e.delete(d.Item)
	}
	e.version = d.Item.Version
}

// isNews reports whether nobody knows the object that waits in e: then nobody need know that it is gone.
func (f *DeltaFIFO[T]) isNews(e *entry[T]) bool {
	if e.gone != nil || f.KnownObjects == nil {
		return false
	}
	known, _ := f.known(e.item.Key)
	return known == nil
}

// kind returns what a change is to who knows known.
func (f *DeltaFIFO[T]) kind(told DeltaType, known *Item[T]) DeltaType {
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
		e.kind = DeltaAdded // another object of the same name
	case e.kind == DeltaSync:
		e.kind = DeltaUpdated
	}
	e.item = item
}

// delete folds a deletion into e. The object that is known was deleted first: where e says so already, what came after it was never seen.
func (e *entry[T]) delete(item *Item[T]) {
	if e.gone == nil || e.unknownState && e.item == nil {
		e.gone, e.unknownState = item, false
	}
	e.item = nil
}

// known returns what the consumer will know of key when it is done with what it handles now, and the version of the last change of key that
// it has been given; that is zero where the version is of another epoch.
func (f *DeltaFIFO[T]) known(key listwatch.Key) (*Item[T], listwatch.Version) {
	if e := f.current; e != nil && e.key() == key {
		return e.item, e.version
	}
	if f.KnownObjects == nil {
		return nil, 0
	}
	i, ok := f.KnownObjects.Item(key)
	switch {
	case !ok:
		return nil, 0
	case i.Version > f.claims.told:
		return i, 0
	}
	return i, i.Version
}

// push appends an entry.
func (f *DeltaFIFO[T]) push(e entry[T]) *entry[T] {
	p := f.queue.make()
	*p = e
	f.queue.push(p.key(), p)
	return p
}

// drop removes an entry of which nothing is left.
func (f *DeltaFIFO[T]) drop(e *entry[T]) {
	f.queue.remove(e)
	f.leave(e)
	f.queue.free(e)
}

// leave counts an entry that has been handled or dropped.
func (f *DeltaFIFO[T]) leave(e *entry[T]) {
	if !e.initial {
		return
	}
	f.first.left--
	f.first.check()
}

func (b *batch) check() {
	if b.over || b.left > 0 {
		return
	}
	b.over = true
	if b.done != nil {
		close(b.done)
	}
}

// sync tells what is known of key again. It is no news, so it does not hold back the version.
func (f *DeltaFIFO[T]) sync(key listwatch.Key) {
	if f.closed || f.queue.get(key) != nil {
		return
	}
	known, _ := f.known(key)
	if known == nil {
		return
	}
	f.push(entry[T]{item: known, kind: DeltaSync, version: known.Version, since: f.claims.told + 1})
}
