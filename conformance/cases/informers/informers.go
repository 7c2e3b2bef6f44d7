package informers

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/informer"
)

// mayhem is a random history of writes and faults, at the end of which the faults are over.
func mayhem(c *harness.Copied, steps int) {
	random := c.Random()
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
			_, _ = c.TryDelete(name) // it may not be there
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

// Converge has several follow one collection, each with faults of its own.
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

// cutOff has a cache synced with a, b and d, cut off while b goes, a changes and c comes, and back when the history is gone.
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
		e.Errorf("b vanished while nobody looked: told %+v; want one deletion of b, its final state unknown, with the state of version %d", gone, seen)
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
			e.Errorf("told %s %s at version %d after version %d", t.Type, t.Key, t.Version, newest[t.Key])
		}
		newest[t.Key] = t.Version
		switch was := known[t.Key]; {
		case t.Type == informer.ChangeAdded && was != nil, t.Type != informer.ChangeAdded && was == nil:
			e.Errorf("told %s %s, and the handler held %v", t.Type, t.Key, was)
		case t.Type == informer.ChangeUpdated && t.Old.Version != was.Version:
			e.Errorf("told that %s changed from version %d, and the handler held %d", t.Key, t.Old.Version, was.Version)
		}
		if known[t.Key] = t.New; t.Type == informer.ChangeDeleted {
			delete(known, t.Key)
		}
	}
	for _, o := range c.Cache.Objects() {
		if held := known[o.Key]; held == nil || held.Version != o.Version {
			e.Errorf("the store has %s at version %d, and the handler holds %v", o.Key, o.Version, held)
		}
		delete(known, o.Key)
	}
	for key := range known {
		e.Errorf("the handler holds %s, and the store does not", key)
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
			e.Error("it has synced, and does not run")
		}
		e.RunCache(c.Cache)
		e.Settle()
		if c.Cache.HasSynced() {
			e.Error("it has synced, and the server can't be reached")
		}
		c.AllowDials()
		e.Settle()
		if synced := c.Cache.HasSynced(); synced != empty {
			e.Errorf("synced is %v while the handler has not returned; want %v: the collection is empty: %v", synced, empty, empty)
		}
		close(goOn)
		e.Settle()
		if !c.Cache.HasSynced() || (handled.Load() == 0) != empty {
			e.Errorf("synced is %v after %d calls of the handler; want true, the collection is empty: %v", c.Cache.HasSynced(), handled.Load(), empty)
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

// backoffOf is how client-go's Reflector waits: from 0.8 s, doubled to 30 s, and anew after two good minutes.
const (
	firstWait  = 800 * time.Millisecond
	longestGap = 31 * time.Second
	others     = 2 * time.Second // Retry-After, and what a stream that ends at once costs
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

// gaps returns the times between requests.
func gaps(times []time.Time) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(times); i++ {
		all = append(all, times[i].Sub(times[i-1]))
	}
	return all
}

// wantGaps holds the gaps against the rule: the stream that follows so many failures was healthy.
func wantGaps(e *harness.Env, what string, gaps []time.Duration, failures int) {
	e.Helper()
	if len(gaps) <= failures+2 {
		e.Errorf("%s: %d requests in half an hour, want %d failures, one that is good and others after it", what, len(gaps)+1, failures)
		return
	}
	wantGrowth(e, what, gaps[:failures])
	if after := gaps[failures+1]; after > 4*firstWait+others {
		e.Errorf("%s: waited %v after a stream that was good for many minutes, want at most %v: what failed before is forgotten", what, after, 4*firstWait)
	}
}

// wantGrowth holds the gaps between failures against the rule.
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
		e.Errorf("%s: waited %v: want waits from %v, doubled, to 30 s", what, gaps, firstWait)
	}
	if len(distinct) < len(gaps)/2 {
		e.Errorf("%s: waited %v: want waits at random, or all clients come back together", what, gaps)
	}
}
