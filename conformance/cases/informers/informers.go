package informers

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/informer"
)

// mayhem performs random writes and faults. At the end it lets the client connect again and
// waits until the cache has caught up.
func mayhem(c *harness.Copied, steps int) {
	random := c.RandomSeeded()
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
			<-time.After(time.Duration(random.IntN(120)) * time.Second)
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
	for range 3 {
		mayhem(c, 60)
		e.WantCopy(c.Cache)
	}
}

// Converge checks that several caches of one collection converge although each one's
// connections fail at random.
func Converge(e *harness.Env) {
	var all []*harness.Copied
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
		mayhem(c, 40)
	}
	for _, c := range all {
		e.WantCopy(c.Cache)
	}
}

// cutOff runs a cache through an outage that outlasts the history. The cache syncs with a,
// b and d, and then its connections fail. During the outage b is updated and deleted, a is
// updated, c is created, and the history is compacted. Then the cache can connect again.
// unseen is the last version of b that the cache received.
func cutOff(e *harness.Env) (c *harness.Copied, handler *harness.NotificationLog, unseen listwatch.Version) {
	e.Put("a")
	seen := e.Put("b")
	e.Put("d")
	c, handler = e.CopyCollection(), new(harness.NotificationLog)
	c.Cache.Notify(handler.Add)
	e.RunCache(c.Cache)
	e.Settle()
	e.WantNotifications(handler, "added a", "added b", "added d")

	c.ResetAll(true)
	<-time.After(time.Second)
	e.Put("b")
	e.Delete("b")
	e.Put("a")
	e.Put("c")
	e.CompactHistory()
	c.AllowDials()
	e.Settle()
	return c, handler, seen
}

func informerFinalStateUnknown(e *harness.Env) {
	_, handler, seen := cutOff(e)
	var gone []harness.Notification
	for _, t := range handler.Take() {
		if t.Type == informer.ChangeDeleted {
			gone = append(gone, t)
		}
	}
	if len(gone) != 1 || gone[0].Key.Name != "b" || !gone[0].FinalStateUnknown || gone[0].New == nil || gone[0].New.Version != seen {
		e.Errorf("b was deleted during the outage: the handler received the deletions %+v; want one of b, marked FinalStateUnknown, with the object of version %d", gone, seen)
	}
}

func informerRelistDiff(e *harness.Env) {
	c, handler, _ := cutOff(e)
	e.WantNotifications(handler, "added c", "deleted b: final state unknown", "updated a")
	e.WantCopy(c.Cache)
	c.ResetAll(false)
	e.CompactHistory()
	e.Settle()
	e.WantNotifications(handler)
}

func informerNoOldUpdate(e *harness.Env) {
	c, handler := e.CopyCollection(), new(harness.NotificationLog)
	c.Cache.Notify(handler.Add)
	e.RunCache(c.Cache)
	mayhem(c, 150)
	newest := map[listwatch.Key]listwatch.Version{}
	known := map[listwatch.Key]*listwatch.Object{}
	for _, t := range handler.Take() {
		if t.Version < newest[t.Key] || t.Version == newest[t.Key] && t.Type != informer.ChangeDeleted {
			e.Errorf("the handler received %s %s at version %d after version %d", t.Type, t.Key, t.Version, newest[t.Key])
		}
		newest[t.Key] = t.Version
		switch was := known[t.Key]; {
		case t.Type == informer.ChangeAdded && was != nil, t.Type != informer.ChangeAdded && was == nil:
			e.Errorf("the handler received %s %s, but its last state of the object is %v", t.Type, t.Key, was)
		case t.Type == informer.ChangeUpdated && t.Old.Version != was.Version:
			e.Errorf("the handler received an update of %s from version %d, but its last state has version %d", t.Key, t.Old.Version, was.Version)
		}
		if known[t.Key] = t.New; t.Type == informer.ChangeDeleted {
			delete(known, t.Key)
		}
	}
	for _, o := range c.Cache.Objects() {
		if held := known[o.Key]; held == nil || held.Version != o.Version {
			e.Errorf("the local store has %s at version %d, but the handler's last state is %v", o.Key, o.Version, held)
		}
		delete(known, o.Key)
	}
	for key := range known {
		e.Errorf("the handler did not receive the deletion of %s, which is not in the local store", key)
	}
}

func informerHasSynced(e *harness.Env) {
	for _, empty := range []bool{true, false} {
		if !empty {
			e.Put("a")
			e.Put("b")
		}
		c, goOn := e.CopyCollection(), make(chan struct{})
		var handled atomic.Int64
		c.Cache.Notify(func(harness.Notification) {
			<-goOn
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
			e.Errorf("HasSynced is %v while handlers are blocked; want %v, because the collection is empty: %v", synced, empty, empty)
		}
		close(goOn)
		e.Settle()
		if !c.Cache.HasSynced() || (handled.Load() == 0) != empty {
			e.Errorf("HasSynced is %v after %d calls of the handler; want true, and calls only if the collection is not empty (it is empty: %v)", c.Cache.HasSynced(), handled.Load(), empty)
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

// The backoff of client-go's Reflector starts at 0.8 seconds, doubles with each failure up
// to 30 seconds, and starts over after a stream that was healthy for two minutes.
const (
	firstWait  = 800 * time.Millisecond
	longestGap = 31 * time.Second // 30 seconds, and some tolerance
	others     = 2 * time.Second  // Retry-After, or a stream that ends at once
)

func informerBackoff(e *harness.Env) {
	expired := &listwatch.Error{Code: listwatch.Expired, Message: "too old"}
	for what, step := range map[string]http.HandlerFunc{
		"410": e.SendError(expired),
		"429": harness.Respond(429, "", "Retry-After", "1"),
		"500": harness.Respond(500, "oops"),
		"503": harness.Respond(503, "away"),
	} {
		const failures = 12
		steps := make([]http.HandlerFunc, failures)
		for i := range steps {
			steps[i] = step
		}
		synced := listwatch.NewBookmark(listwatch.Description{APIVersion: "v1", Kind: "Thing"}, 7, true)
		healthy := make(chan struct{})
		script, at := e.ServeInTurn(append(steps, e.SendThenHold(healthy, synced), step)...)
		c := e.CacheOf(e.Remote(at))
		e.RunCache(c)
		<-time.After(20 * time.Minute)
		close(healthy)
		<-time.After(10 * time.Minute)
		wantGaps(e, what, gaps(script.RequestTimes()), failures)
	}

	c := e.CopyCollection()
	c.ResetAll(true)
	e.RunCache(c.Cache)
	<-time.After(20 * time.Minute)
	c.AllowDials()
	c.Settle()
	refused := gaps(c.DialTimes())
	wantGrowth(e, "refused", refused[:len(refused)-1])
	e.WantCopy(c.Cache)
}

// gaps returns the time between each request and the next.
func gaps(times []time.Time) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(times); i++ {
		all = append(all, times[i].Sub(times[i-1]))
	}
	return all
}

// wantGaps checks the gaps between requests: the first failures requests failed, the next
// one opened a healthy stream, and later requests failed again.
func wantGaps(e *harness.Env, what string, gaps []time.Duration, failures int) {
	e.Helper()
	if len(gaps) <= failures+2 {
		e.Errorf("%s: %d requests in half an hour, want %d failures, a success and at least two more requests", what, len(gaps)+1, failures)
		return
	}
	wantGrowth(e, what, gaps[:failures])
	if after := gaps[failures+1]; after > 4*firstWait+others {
		e.Errorf("%s: waited %v after a stream that was healthy for minutes, want about %v at most: a healthy stream resets the backoff", what, after, 4*firstWait)
	}
}

// wantGrowth checks that the gaps between failures grow up to the limit, and that they are
// random.
func wantGrowth(e *harness.Env, what string, gaps []time.Duration) {
	e.Helper()
	distinct := map[time.Duration]bool{}
	var early, late time.Duration
	for i, gap := range gaps {
		distinct[gap] = true
		if i < 3 {
			early = max(early, gap)
		} else if i >= 6 {
			late = max(late, gap)
		}
	}
	if early > 4*firstWait+others || late <= early || late > longestGap+others {
		e.Errorf("%s: waited %v, want delays that start at %v and double up to 30 s", what, gaps, firstWait)
	}
	if len(distinct) < len(gaps)/2 {
		e.Errorf("%s: waited %v, want random delays, so that clients do not all reconnect together", what, gaps)
	}
}
