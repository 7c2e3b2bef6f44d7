package clusterrelay

import (
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// ownWrites are the writes that the relay has passed on, so that the next read of their clients
// includes them. The zero ownWrites has none. It is safe for concurrent use.
type ownWrites struct {
	// newest is a version that covers the writes with a version in their response. counted is the
	// number of all other writes, and shown is the number of these writes that newest covers as
	// well.
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

// doubt records that the versions of the upstream may have gone back, so the versions of earlier
// writes have no meaning.
func (o *ownWrites) doubt() {
	o.counted.Add(1)
	o.newest.Store(0)
}

// show records that the newest state of the upstream, at version v, has the counted writes. The
// cache may be older.
func (o *ownWrites) show(counted uint64, v listwatch.Version) {
	if o.shown.Load() < counted {
		raise(&o.newest, uint64(v))
		raise(&o.shown, counted)
	}
}

// including returns q unchanged if q requests a specific state, or if the cache has all writes.
// Otherwise it returns a query of a state that has them: the state at the version of the newest
// write, or the newest state of the upstream if that version is not known, as after a deletion.
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
