package informers

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/informer"
)

// injectRandomFaults performs random writes and injects random faults. At the end it lets the
// client connect again and waits until the cache has caught up.
func injectRandomFaults(c *harness.CachedEnv, steps int) {
	random := c.Random()
	if !c.Setup.FakeTime {
		steps /= 4 // each fault doubles the real delay of the next attempt
	}
	for range steps {
		name := string(rune('a' + random.IntN(6)))
		switch random.IntN(12) {
		case 0:
			c.ResetAll(random.IntN(2) == 0)
		case 1:
			c.AllowDials()
		case 2:
			c.CompactHistory()
		case 3, 4:
			_, _ = c.TryDelete(name) // the object may not exist
		case 5:
			pause := time.Duration(random.IntN(120))
			c.Pause(pause*time.Second, pause*time.Millisecond)
		default:
			c.Put(name)
		}
	}
	c.AllowDials()
	c.Settle()
}

func informerStoreEqualsList(e *harness.Env) {
	c := e.CopyCollection()
	e.RunCache(c.Cache)
	rounds := 3
	if !e.Setup.FakeTime {
		rounds = 1
	}
	for range rounds {
		injectRandomFaults(c, 60)
		e.WantCopy(c.Cache)
	}
}

// CachesConverge checks that several caches of one collection converge although the connections of
// each cache fail at random.
func CachesConverge(e *harness.Env) {
	var all []*harness.CachedEnv
	for range 3 {
		c := e.CopyCollection()
		e.RunCache(c.Cache)
		all = append(all, c)
	}
	e.Put("a")
	e.Settle()
	for _, c := range all {
		e.WantCopy(c.Cache)
	}
	for _, c := range all {
		injectRandomFaults(c, 40)
	}
	for _, c := range all {
		e.WantCopy(c.Cache)
	}
	// A defect could go unnoticed if the last random writes deleted every object that a cache
	// failed to update. Therefore compare again after another write.
	e.Put("a")
	e.Settle()
	for _, c := range all {
		e.WantCopy(c.Cache)
	}
}

// runThroughOutage runs a cache through an outage that outlasts the history. The cache syncs with
// the objects a, b and d, and then its connections fail. During the outage, object b is updated and
// deleted, object a is updated, object c is created, and the history is compacted. Then the cache
// can connect again. lastSeen is the last version of b that the cache received.
func runThroughOutage(e *harness.Env) (c *harness.CachedEnv, log *harness.NotificationLog, lastSeen listwatch.Version) {
	e.Put("a")
	lastSeen = e.Put("b")
	e.Put("d")
	c, log = e.CopyCollection(), new(harness.NotificationLog)
	c.Cache.Notify(log.Add)
	e.RunCache(c.Cache)
	e.Settle()
	e.WantNotifications(log, "added a", "added b", "added d")

	c.ResetAll(true)
	<-time.After(time.Second)
	e.Put("b")
	e.Delete("b")
	e.Put("a")
	e.Put("c")
	e.CompactHistory()
	c.AllowDials()
	e.Settle()
	return c, log, lastSeen
}

func informerFinalStateUnknown(e *harness.Env) {
	_, log, lastSeen := runThroughOutage(e)
	var deletions []harness.Notification
	for _, t := range log.Take() {
		if t.Type == informer.ChangeDeleted {
			deletions = append(deletions, t)
		}
	}
	if len(deletions) != 1 || deletions[0].Key.Name != "b" || !deletions[0].FinalStateUnknown ||
		deletions[0].New == nil || deletions[0].New.Version != lastSeen {
		e.Errorf("b was deleted during the outage: the handler received the deletions %+v; want one of b, marked "+
			"FinalStateUnknown, with the object of version %d", deletions, lastSeen)
	}
}

func informerDifference(e *harness.Env) {
	c, _, _ := runThroughOutage(e)
	e.WantCopy(c.Cache)
	for i := range 5 {
		c.ResetAll(true)
		e.Put("a")
		e.Put(fmt.Sprint("d", i))
		if i > 0 {
			e.Delete(fmt.Sprint("d", i-1))
		}
		e.CompactHistory()
		c.AllowDials()
		e.Settle()
		e.WantCopy(c.Cache)
	}
}

func informerRelistDiff(e *harness.Env) {
	c, log, _ := runThroughOutage(e)
	e.WantNotifications(log, "added c", "deleted b: final state unknown", "updated a")
	e.WantCopy(c.Cache)
	c.ResetAll(false)
	e.CompactHistory()
	e.Settle()
	e.WantNotifications(log)
}

func informerNoOldUpdate(e *harness.Env) {
	c, log := e.CopyCollection(), new(harness.NotificationLog)
	c.Cache.Notify(log.Add)
	e.RunCache(c.Cache)
	injectRandomFaults(c, 150)
	newest := map[listwatch.Key]listwatch.Version{}
	states := map[listwatch.Key]*listwatch.Object{}
	for _, t := range log.Take() {
		if t.Version < newest[t.Key] || t.Version == newest[t.Key] && t.Type != informer.ChangeDeleted {
			e.Errorf("the handler received %s %s at version %d after version %d", t.Type,
				t.Key, t.Version, newest[t.Key])
		}
		newest[t.Key] = t.Version
		switch old := states[t.Key]; {
		case t.Type == informer.ChangeAdded && old != nil, t.Type != informer.ChangeAdded && old == nil:
			e.Errorf("the handler received %s %s, but its last state of the object is %v", t.Type, t.Key, old)
		case t.Type == informer.ChangeUpdated && t.Old.Version != old.Version:
			e.Errorf("the handler received an update of %s from version %d, but its last state has version %d", t.Key,
				t.Old.Version, old.Version)
		}
		if states[t.Key] = t.New; t.Type == informer.ChangeDeleted {
			delete(states, t.Key)
		}
	}
	for _, o := range c.Cache.Objects() {
		if state := states[o.Key]; state == nil || state.Version != o.Version {
			e.Errorf("the local store has %s at version %d, but the handler's last state is %v", o.Key, o.Version,
				state)
		}
		delete(states, o.Key)
	}
	for key := range states {
		e.Errorf("the handler did not receive the deletion of %s, which is not in the local store", key)
	}
}

func informerHasSynced(e *harness.Env) {
	for _, empty := range []bool{true, false} {
		if !empty {
			e.Put("a")
			e.Put("b")
		}
		c, release := e.CopyCollection(), make(chan struct{})
		var handled atomic.Int64
		c.Cache.Notify(func(harness.Notification) {
			<-release
			handled.Add(1)
		})
		c.ResetAll(true)
		if c.Cache.HasSynced() {
			e.Error("HasSynced is true before the cache runs")
		}
		e.RunCache(c.Cache)
		e.Settle()
		if c.Cache.HasSynced() {
			e.Error("HasSynced is true although the server is unreachable")
		}
		c.AllowDials()
		e.Settle()
		if synced := c.Cache.HasSynced(); synced != empty {
			e.Errorf("HasSynced is %v while handlers are blocked; want %v, because the collection is empty: %v", synced,
				empty, empty)
		}
		close(release)
		e.Settle()
		if !c.Cache.HasSynced() || (handled.Load() == 0) != empty {
			e.Errorf("HasSynced is %v after %d calls of the handler; want true, and calls only if the collection is "+
				"not empty (it is empty: %v)", c.Cache.HasSynced(), handled.Load(), empty)
		}
	}
}

func informerLateHandler(e *harness.Env) {
	e.Put("a")
	e.Put("b")
	c := e.CopyCollection()
	e.RunCache(c.Cache)
	e.Settle()
	e.Put("b")
	e.Settle()
	late := new(harness.NotificationLog)
	c.Cache.Notify(late.Add)
	e.Put("c")
	e.Settle()
	e.WantNotifications(late, "added a", "added b", "added c")
	e.Put("a")
	e.Settle()
	e.WantNotifications(late, "updated a")
}
