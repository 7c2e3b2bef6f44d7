package cases

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
)

// mayhem is a random history of writes and faults, at the end of which the faults are over.
func (c *copied) mayhem(steps int) {
	random := c.seeded()
	for range steps {
		name := string(rune('a' + random.IntN(6)))
		switch random.IntN(12) {
		case 0:
			c.cut(random.IntN(2) == 0)
		case 1:
			c.back()
		case 2:
			c.compact()
		case 3, 4:
			_, _ = c.tryDelete(name) // it may not be there
		case 5:
			<-time.After(time.Duration(random.IntN(120)) * time.Second)
		default:
			c.put(name)
		}
	}
	c.back()
	c.settle()
}

func informerStoreEqualsList(e *env) {
	c := e.copies()
	e.runs(c.cache)
	for range 3 {
		c.mayhem(60)
		e.wantCopy(c.cache)
	}
}

// informersConverge has several follow one collection, each with faults of its own.
func informersConverge(e *env) {
	var all []*copied
	for range 3 {
		c := e.copies()
		e.runs(c.cache)
		all = append(all, c)
	}
	e.put("a")
	e.settle()
	for _, c := range all {
		e.wantCopy(c.cache)
	}
	for _, c := range all {
		c.mayhem(40)
	}
	for _, c := range all {
		e.wantCopy(c.cache)
	}
}

// cutOff has a cache synced with a, b and d, cut off while b goes, a changes and c comes, and back when the history is gone.
func (e *env) cutOff() (c *copied, handler *book, unseen listwatch.Version) {
	e.put("a")
	seen := e.put("b")
	e.put("d")
	c, handler = e.copies(), new(book)
	c.cache.Tell(handler.tell)
	e.runs(c.cache)
	e.settle()
	e.wantTold(handler, "added a", "added b", "added d")

	c.cut(true)
	<-time.After(time.Second)
	e.put("b")
	e.delete("b")
	e.put("a")
	e.put("c")
	e.compact()
	c.back()
	e.settle()
	return c, handler, seen
}

func informerFinalStateUnknown(e *env) {
	_, handler, seen := e.cutOff()
	var gone []Told
	for _, t := range handler.take() {
		if t.Type == informer.ChangeDeleted {
			gone = append(gone, t)
		}
	}
	if len(gone) != 1 || gone[0].Key.Name != "b" || !gone[0].FinalStateUnknown || gone[0].New == nil || gone[0].New.Version != seen {
		e.Errorf("b vanished while nobody looked: told %+v; want one deletion of b, its final state unknown, with the state of version %d", gone, seen)
	}
}

func informerRelistDiff(e *env) {
	c, handler, _ := e.cutOff()
	e.wantTold(handler, "added c", "deleted b: final state unknown", "updated a")
	e.wantCopy(c.cache)
	c.cut(false)
	e.compact()
	e.settle()
	e.wantTold(handler)
}

func informerNoOldUpdate(e *env) {
	c, handler := e.copies(), new(book)
	c.cache.Tell(handler.tell)
	e.runs(c.cache)
	c.mayhem(150)
	newest := map[listwatch.Key]listwatch.Version{}
	known := map[listwatch.Key]*listwatch.Object{}
	for _, t := range handler.take() {
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
	for _, o := range c.cache.Objects() {
		if held := known[o.Key]; held == nil || held.Version != o.Version {
			e.Errorf("the store has %s at version %d, and the handler holds %v", o.Key, o.Version, held)
		}
		delete(known, o.Key)
	}
	for key := range known {
		e.Errorf("the handler holds %s, and the store does not", key)
	}
}

func informerHasSynced(e *env) {
	for _, empty := range []bool{true, false} {
		if !empty {
			e.put("a")
			e.put("b")
		}
		c, goOn := e.copies(), make(chan struct{})
		var handled atomic.Int64
		c.cache.Tell(func(Told) {
			<-goOn
			handled.Add(1)
		})
		c.cut(true)
		if c.cache.HasSynced() {
			e.Error("it has synced, and does not run")
		}
		e.runs(c.cache)
		e.settle()
		if c.cache.HasSynced() {
			e.Error("it has synced, and the server can't be reached")
		}
		c.back()
		e.settle()
		if synced := c.cache.HasSynced(); synced != empty {
			e.Errorf("synced is %v while the handler has not returned; want %v: the collection is empty: %v", synced, empty, empty)
		}
		close(goOn)
		e.settle()
		if !c.cache.HasSynced() || (handled.Load() == 0) != empty {
			e.Errorf("synced is %v after %d calls of the handler; want true, the collection is empty: %v", c.cache.HasSynced(), handled.Load(), empty)
		}
	}
}

func informerLateHandler(e *env) {
	e.put("a")
	e.put("b")
	c := e.copies()
	e.runs(c.cache)
	e.settle()
	e.put("b")
	e.settle()
	late := new(book)
	c.cache.Tell(late.tell)
	e.put("c")
	e.settle()
	e.wantTold(late, "added a", "added b", "added c")
	e.put("a")
	e.settle()
	e.wantTold(late, "updated a")
}

// backoffOf is how client-go's Reflector waits: from 0.8 s, doubled to 30 s, and anew after two good minutes.
const (
	firstWait  = 800 * time.Millisecond
	longestGap = 31 * time.Second
	others     = 2 * time.Second // Retry-After, and what a stream that ends at once costs
)

func informerBackoff(e *env) {
	expired := &listwatch.Error{Code: listwatch.Expired, Message: "too old"}
	for what, step := range map[string]http.HandlerFunc{
		"410": e.fails(expired),
		"429": says(429, "", "Retry-After", "1"),
		"500": says(500, "oops"),
		"503": says(503, "away"),
	} {
		const failures = 12
		steps := make([]http.HandlerFunc, failures)
		for i := range steps {
			steps[i] = step
		}
		synced := listwatch.NewBookmark(listwatch.Description{APIVersion: "v1", Kind: "Thing"}, 7, true)
		healthy := make(chan struct{})
		script, at := e.play(append(steps, e.holds(healthy, synced), step)...)
		c := e.cacheOf(e.remote(at))
		e.runs(c)
		<-time.After(20 * time.Minute)
		close(healthy)
		<-time.After(10 * time.Minute)
		e.wantGaps(what, gaps(script.times()), failures)
	}

	c := e.copies()
	c.cut(true)
	e.runs(c.cache)
	<-time.After(20 * time.Minute)
	c.back()
	c.settle()
	refused := gaps(c.dials())
	e.wantGrowth("refused", refused[:len(refused)-1])
	e.wantCopy(c.cache)
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
func (e *env) wantGaps(what string, gaps []time.Duration, failures int) {
	e.Helper()
	if len(gaps) <= failures+2 {
		e.Errorf("%s: %d requests in half an hour, want %d failures, one that is good and others after it", what, len(gaps)+1, failures)
		return
	}
	e.wantGrowth(what, gaps[:failures])
	if after := gaps[failures+1]; after > 4*firstWait+others {
		e.Errorf("%s: waited %v after a stream that was good for many minutes, want at most %v: what failed before is forgotten", what, after, 4*firstWait)
	}
}

// wantGrowth holds the gaps between failures against the rule.
func (e *env) wantGrowth(what string, gaps []time.Duration) {
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
