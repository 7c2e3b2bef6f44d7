package informer

import "github.com/listwatch/listwatch"

// A notice is what a handler is yet to be told of one key.
type notification[T any] struct {
	key     listwatch.Key
	old     *Item[T] // what the handler knows; nil: nothing
	oldFinal    *Item[T] // the end of what it knows, where another object of that name came after it
	now     *Item[T] // what is there now; where deleted, the end of old
	deleted bool
	initial bool
	resync  bool
	deletedAt      listwatch.Version // when old was found gone
	finalStateUnknown bool              // that was by a list: how it ended was not seen

	marker func() // instead of all that: everything before it has been handled
}

// isVoid reports whether n was taken back.
func (n *notification[T]) isCanceled() bool { return n.now == nil && n.marker == nil }

// join makes of p what the handler is to be told where n follows. It reports false where that is nothing: it never knew the object.
func (p *notification[T]) merge(n notification[T]) bool {
	switch {
	case n.resync:
		return true // it is told of the key anyway
	case n.deleted && p.old == nil:
		return false
	case n.deleted && p.oldFinal != nil:
		// The object in between was never seen: what is told is the end of the one that the handler knows.
		p.now, p.oldFinal, p.deleted = p.oldFinal, nil, true
	case n.deleted:
		p.now, p.deleted, p.deletedAt, p.finalStateUnknown = n.now, true, n.deletedAt, n.finalStateUnknown
	case p.deleted:
		p.oldFinal, p.now, p.deleted = p.now, n.now, false
	default:
		p.now = n.now
	}
	p.resync = false
	return true
}

// changes calls yield with what n says, at most two changes; false: yield did.
func (n *notification[T]) changes(yield func(Change[T]) bool) bool {
	if n.oldFinal != nil && !yield(n.deletion(n.oldFinal)) {
		return false
	}
	if n.deleted {
		return yield(n.deletion(n.now))
	}
	c := Change[T]{Type: ChangeAdded, Key: n.key, Version: n.now.Version, New: n.now.Value, Initial: n.initial, Resync: n.resync}
	if n.old != nil && n.oldFinal == nil {
		c.Type, c.Old = ChangeUpdated, n.old.Value
	}
	return yield(c)
}

// disappeared is the change that ends old.
func (n *notification[T]) deletion(last *Item[T]) Change[T] {
	return Change[T]{
		Type: ChangeDeleted, Key: n.key, Version: n.deletedAt, Old: n.old.Value, New: last.Value, FinalStateUnknown: n.finalStateUnknown,
	}
}
