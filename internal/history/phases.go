package history

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A snapshotReader reads a state in key order, some objects at a time.
type snapshotReader struct {
	tree *tree
	last *listwatch.Object // the last one returned
}

func (c *Cursor) pollInitial(dst []listwatch.Event) (n int) {
	r := &c.initial
	from := listwatch.Key{}
	skip := r.last
	if skip != nil {
		from = skip.Key
	}
	done := true
	c.feed.selection.ascend(r.tree, from, func(o *listwatch.Object) bool {
		if o == skip {
			return true
		}
		if n == len(dst) {
			done = false
			return false
		}
		dst[n] = initialEvent(o, c.log.initial)
		n++
		r.last = o
		return true
	})
	if done {
		c.phase = synced
		*r = snapshotReader{}
	}
	return n
}

// A replay reads the records from next up to but not including end, which are older than the feed.
type replay struct {
	next, end uint64
}

func (c *Cursor) pollReplay(dst []listwatch.Event, started bool) (n int) {
	var batch [128]*record
	r := &c.replay
	for n < len(dst) && r.next < r.end {
		c.log.mu.Lock()
		got, ok := c.log.records.copyFrom(r.next, r.end, batch[:])
		floor := c.log.records.floor
		c.log.mu.Unlock()
		if !ok {
			c.err = fellBehind(floor)
			return n
		}
		for i, rec := range batch[:got] {
			if n == len(dst) || (started || n > 0) && startsGroup(batch[:got], i) && !groupFits(batch[i:got], len(dst)-n) {
				return n
			}
			if what := c.feed.selection.transition(rec); what != none {
				dst[n] = rec.event(what)
				n++
			}
			r.next++
		}
	}
	if r.next == r.end {
		// The feed was joined at its tail, when the replay was cut out: nothing behind that has been read here.
		c.phase = following
	}
	return n
}

// startsGroup reports whether the record before i, if it is there, is of another version.
func startsGroup(batch []*record, i int) bool {
	return i == 0 || batch[i-1].version != batch[i].version
}

// groupFits reports whether the records of the version of the first are at most room.
func groupFits(rest []*record, room int) bool {
	return len(rest) <= room || rest[room].version != rest[0].version
}

// versionBefore returns the version up to which everything is complete once all records before number have been read; zero where
// number has left the window.
func (l *Log) versionBefore(number uint64) listwatch.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	base := l.records.numberOf0()
	if number < base || number >= l.records.next {
		return 0
	}
	return l.records.at(int(number-base)).version - 1
}

// A futureWait is the wait of a cursor for the head to reach the version that it is to start at.
type futureWait struct {
	stop  func() // takes the wait for the head back
	timer *time.Timer

	mu sync.Mutex
	// Guarded by mu.
	over bool // reached or given up
	wake func()
}

func waitForFuture(c *Cursor) *futureWait {
	w := new(futureWait)
	w.timer = time.AfterFunc(patience, w.end)
	w.stop = c.log.head.reach(c.start.version, w.end)
	return w
}

func (w *futureWait) end() {
	w.mu.Lock()
	w.over = true
	wake := w.wake
	w.wake = nil
	w.mu.Unlock()
	if wake != nil {
		wake()
	}
}

func (w *futureWait) sleep(wake func()) (asleep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.wake = wake
	return true
}

// cancel ends the wait and returns the wake function if one was armed.
func (w *futureWait) cancel() func() {
	w.timer.Stop()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := w.wake
	w.wake, w.over = nil, true
	return wake
}

// Awaiting returns the error that c will end with if the version to start at does not come, while it waits for that; nil otherwise.
func (c *Cursor) PendingError() error {
	if c.phase != waiting {
		return nil
	}
	return tooLarge(c.start.version, c.log.head.Version())
}

func (c *Cursor) pollFuture() {
	w := c.future
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if !over {
		return
	}
	w.timer.Stop()
	w.stop()
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(w)
	if c.err = l.endErr(); c.err != nil {
		return
	}
	if now := l.now(); now < c.start.version {
		c.err = tooLarge(c.start.version, now)
		return
	}
	c.err = c.begin()
}
