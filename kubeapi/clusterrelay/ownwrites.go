package clusterrelay

import (
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// ownWrites are the writes that the relay has passed on, so that the next read of their clients
// includes them. The zero ownWrites has none. It is safe for concurrent use.
type ownWrites struct {
	// newest is the newest version in the response to a write. counted is the number of the writes
	// without such a version, and shown the number of those that every state of the cache includes.
	newest, counted, shown atomic.Uint64
}

// add records a write. version is the version in its response, or zero if there is none.
func (o *ownWrites) add(version listwatch.Version) {
	if version == 0 {
		o.counted.Add(1)
		return
	}
	raise(&o.newest, uint64(version))
}

// doubt records that the versions of the upstream may have gone back, so that the versions of
// writes mean nothing.
func (o *ownWrites) doubt() {
	o.counted.Add(1)
	o.newest.Store(0)
}

// including returns q if it requests a certain state, or if the cache has all writes. Otherwise it
// returns a query of a state that has them: the state at the version of the newest write, or the
// newest state of the upstream if that version is not known, as after a deletion.
func (o *ownWrites) including(q listwatch.Query) listwatch.Query {
	newest := listwatch.Version(o.newest.Load())
	switch {
	case q.Start != listwatch.StartAny:
	case o.shown.Load() < o.counted.Load():
		q.Start = listwatch.StartNewest
	case newest != 0:
		if q.SendsInitialEvents() {
			q.InitialEvents = listwatch.InitialEventsYes
		}
		q.Start, q.Version = listwatch.StartAt, newest
	}
	return q
}

// raise sets a to v unless it is greater.
func raise(a *atomic.Uint64, v uint64) {
	for {
		old := a.Load()
		if old >= v || a.CompareAndSwap(old, v) {
			return
		}
	}
}
