package watchcache

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// Replace sets the state of the cache to objects, at version v. The objects may be in any order.
// The first call makes the cache readable. A later call is for an owner that may have missed
// changes: it drops the history, and ends every watch with [listwatch.Expired], because clients
// must list again.
//
// past holds the changes, in order, that led to the state from an earlier version, which the
// owner chooses. Watches can resume from that version, as if the cache had existed at that time.
// If the first Change has only a Version, that is the earlier version. Otherwise it is the
// version before the first change. A change of an object that existed before must have Old. An
// owner that does not know the past passes no changes. A later call of Replace ignores past.
//
// An error has the code [listwatch.Invalid] if v is zero or less than [Cache.Version], or if an
// object occurs twice, has no name or version, or has a version above v. It has the same code if a
// change of the past is malformed. It has the code [listwatch.Corrupt] if the changes of the past
// are out of order or do not lead to objects. After an error the cache is unchanged. After a
// failure of the cache, Replace returns that failure.
func (c *Cache) Replace(objects []*listwatch.Object, v listwatch.Version, past ...Change) error {
	if c.group != nil {
		return errOfGroup
	}
	state, err := c.state(objects, v)
	if err != nil {
		return err
	}
	c.feed.Lock()
	if err = c.failure(); err == nil {
		err = c.replace(state, v, past)
	}
	c.feed.Unlock()
	if err == nil {
		c.revision.Advance(v)
	}
	return err
}

// state checks the objects of a state and returns them with their fields.
func (c *Cache) state(objects []*listwatch.Object, v listwatch.Version) ([]*listwatch.Object, error) {
	if v == 0 {
		return nil, errVersionZero("the state")
	}
	state := make([]*listwatch.Object, len(objects))
	seen := make(map[listwatch.Key]bool, len(objects))
	for i, o := range objects {
		if err := checkObject(o); err != nil {
			return nil, err
		}
		switch {
		case o.Version > v:
			return nil, invalid("object %v has version %d, which is above the version of the state, %d",
				o.Key, o.Version, v)
		case seen[o.Key]:
			return nil, invalid("the state has object %v twice", o.Key)
		}
		seen[o.Key] = true
		state[i] = c.complete(o)
	}
	return state, nil
}

// replace sets the state. The caller must hold c.feed.
func (c *Cache) replace(state []*listwatch.Object, v listwatch.Version, past []Change) error {
	if v < c.last {
		return invalid("the state has version %d, but the cache has reached version %d: versions must not go back",
			v, c.last)
	}
	if c.isReady() {
		c.log.Reset(state, v)
		c.last = v
		return nil
	}
	saved, err := c.savedLog(state, v, past)
	if err != nil {
		return err
	}
	o := history.Options{Retention: c.options.History, Description: c.description, Revision: c.revision}
	log, err := history.Restore(o, saved)
	if err != nil {
		return err
	}
	c.log, c.last = log, v
	c.revision.Advance(v) // calls no function of a watcher, because there are no watches yet
	close(c.ready)
	return nil
}

// savedLog converts a state and its past to the form that history.Restore needs.
func (c *Cache) savedLog(state []*listwatch.Object, v listwatch.Version, past []Change) (history.SavedLog, error) {
	saved := history.SavedLog{Objects: state, Floor: v}
	var start listwatch.Version // zero if the owner does not state it
	if len(past) > 0 && past[0].Version > 0 && past[0] == (Change{Version: past[0].Version}) {
		start, past = past[0].Version, past[1:]
		saved.Floor = start
	}
	writes, err := check(past, start, c.pastWrite)
	if err != nil {
		return saved, err
	}
	newest := start
	if len(writes) > 0 {
		newest = writes[len(writes)-1].Version
		if start == 0 {
			saved.Floor = writes[0].Version - 1
		}
	}
	if newest > v {
		return saved, invalid("the past has version %d, which is above the version of the state, %d", newest, v)
	}
	for _, group := range groups(writes) {
		saved.Records = append(saved.Records, records(group)...)
	}
	return saved, nil
}

// Apply adds changes. They must be in order of version, and all changes of a version must be in one
// call, which makes them visible together. A delete of an object that the cache does not have
// changes nothing but the version.
//
// An error has the code [listwatch.Invalid] if a change is malformed or there is no state yet. It
// has the code [listwatch.Corrupt] if the changes are out of order, or if the cache has already
// reached the version of a change. After such an error the cache may lack a change, and only
// Replace repairs that. Readers of the version that the cache has reached may also lack the change.
// So a watch from exactly this version fails with [listwatch.Expired], even after Replace, unless
// it requests initial events. Apart from that, the cache is unchanged after an error.
func (c *Cache) Apply(changes ...Change) error {
	switch {
	case c.group != nil:
		return errOfGroup
	case len(changes) == 0:
		return nil
	}
	c.feed.Lock()
	v, err := c.apply(changes)
	c.feed.Unlock()
	if err == nil {
		c.revision.Advance(v)
	}
	return err
}

// apply appends changes to the log and returns the version of the last one. The caller must hold
// c.feed.
func (c *Cache) apply(changes []Change) (listwatch.Version, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	if !c.isReady() {
		return 0, invalid("a change was applied before the state: call Replace first")
	}
	writes, err := check(changes, c.last, c.write)
	if err != nil {
		if listwatch.CodeOf(err) == listwatch.Corrupt {
			c.incomplete.Store(uint64(c.last))
		}
		return 0, err
	}
	for _, group := range groups(writes) {
		c.append(group[0].Version, group)
	}
	c.last = writes[len(writes)-1].Version
	return c.last, nil
}

// append appends writes to the log, all at once, after which its state is that of version v. Only
// writes of different versions may have the same key.
func (c *Cache) append(v listwatch.Version, writes []write) {
	var earlier map[listwatch.Key]*listwatch.Object // the objects after the writes so far
	if writes[0].Version != writes[len(writes)-1].Version {
		earlier = make(map[listwatch.Key]*listwatch.Object, len(writes))
	}
	for i := range writes {
		w := &writes[i]
		var ok bool
		if w.Old, ok = earlier[w.key]; !ok {
			w.Old = c.log.Get(w.key)
		}
		if earlier != nil {
			earlier[w.key] = w.New
		}
	}
	if all := records(writes); len(all) > 0 {
		c.log.AppendUntil(v, all)
	}
}

// Advance records that the owner has applied every change up to v, even if the newest change has a
// lower version. Watchers then get bookmarks at v, and readers that wait for v continue. Before the
// first state, and if the cache has already reached v, Advance has no effect.
func (c *Cache) Advance(v listwatch.Version) {
	if c.group != nil {
		c.group.Advance(v)
		return
	}
	c.feed.Lock()
	advance := c.isReady() && v > c.last
	if advance {
		c.last = v
	}
	c.feed.Unlock()
	if advance {
		c.revision.Advance(v)
	}
}
