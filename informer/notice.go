package informer

import "github.com/listwatch/listwatch"

// A notice is what a handler is yet to be told of one key.
type notice[T any] struct {
	key     listwatch.Key
	old     *Item[T] // what the handler knows; nil: nothing
	gone    *Item[T] // the end of what it knows, where another object of that name came after it
	now     *Item[T] // what is there now; where deleted, the end of old
	deleted bool
	initial bool
	resync  bool
	at      listwatch.Version // when old was found gone
	unknown bool              // that was by a list: how it ended was not seen

	mark func() // instead of all that: everything before it has been handled
}

// isVoid reports whether n was taken back.
func (n *notice[T]) isVoid() bool { return n.now == nil && n.mark == nil }

// join makes of p what the handler is to be told where n follows. It reports false where that is nothing: it never knew the object.
func (p *notice[T]) join(n notice[T]) bool {
	switch {
	case n.resync:
		return true // it is told of the key anyway
	case n.deleted && p.old == nil:
		return false
	case n.deleted && p.gone != nil:
		// The object in between was never seen: what is told is the end of the one that the handler knows.
		p.now, p.gone, p.deleted = p.gone, nil, true
	case n.deleted:
		p.now, p.deleted, p.at, p.unknown = n.now, true, n.at, n.unknown
	case p.deleted:
		p.gone, p.now, p.deleted = p.now, n.now, false
	default:
		p.now = n.now
	}
	p.resync = false
	return true
}

// changes calls yield with what n says, at most two changes; false: yield did.
func (n *notice[T]) changes(yield func(Change[T]) bool) bool {
	if n.gone != nil && !yield(n.disappeared(n.gone)) {
		return false
	}
	if n.deleted {
		return yield(n.disappeared(n.now))
	}
	c := Change[T]{Type: ChangeAdded, Key: n.key, Version: n.now.Version, New: n.now.Value, Initial: n.initial, Resync: n.resync}
	if n.old != nil && n.gone == nil {
		c.Type, c.Old = ChangeUpdated, n.old.Value
	}
	return yield(c)
}

// disappeared is the change that ends old.
func (n *notice[T]) disappeared(last *Item[T]) Change[T] {
	return Change[T]{
		Type: ChangeDeleted, Key: n.key, Version: n.at, Old: n.old.Value, New: last.Value, FinalStateUnknown: n.unknown,
	}
}
