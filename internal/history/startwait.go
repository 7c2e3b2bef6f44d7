package history

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
)

// start holds the options of a query that matter after a cursor has joined a feed.
type start struct {
	atVersion     bool
	version       listwatch.Version // the start version, if atVersion is true
	initialEvents bool
	bookmarks     bool
	// since is the version of the reader's state. It is zero if the reader needs the whole state.
	since listwatch.Version
}

// A startWait is the stage in which a cursor waits for its start version.
type startWait struct {
	// Immutable after construction.
	next  *live
	start start
	// isAhead is true if the state of the reader is at the start version already. The cursor then
	// waits for that version as long as it takes.
	isAhead       bool
	cancelReached func()      // cancels the callback of the Revision
	timer         *time.Timer // nil if the wait has no timeout

	mu sync.Mutex
	// Guarded by mu.

	// over is true if the version was reached, the wait timed out, or the cursor or the log was
	// closed.
	over bool
	wake func()
}

// await returns the stage in which a cursor with the last stage next waits for its start version.
// If the log is already closed, the wait is over at once. l.mu must be held.
func (l *Log) await(next *live, s start, isAhead bool) *startWait {
	w := &startWait{next: next, start: s, isAhead: isAhead}
	if !isAhead {
		w.timer = time.AfterFunc(revision.Timeout, w.end)
	}
	w.cancelReached = l.revision.OnReached(s.version, w.end)
	if l.closedWith() != nil {
		w.cancel()
		return w
	}
	if l.startWaits == nil {
		l.startWaits = make(map[*live]*startWait)
	}
	l.startWaits[next] = w // CloseWithError ends it
	return w
}

func (w *startWait) read(b batch) (batch, stage, error) {
	if !w.isOver() {
		return b, w, nil
	}
	w.cancel()
	l := w.next.feed.log
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.startWaits, w.next)
	if err := l.closedWith(); err != nil {
		return b, w, err
	}
	if now := l.version(); now < w.start.version {
		return b, w, revision.TooLarge(w.start.version, now)
	}
	next, err := w.next.begin(&w.start)
	return b, next, err
}

func (w *startWait) progress() listwatch.Progress {
	if w.isAhead {
		return listwatch.Progress{State: listwatch.State{Version: w.start.version, ID: w.next.feed.stateID}}
	}
	return listwatch.Progress{Waiting: revision.TooLarge(w.start.version, w.next.feed.log.revision.Version())}
}

func (w *startWait) end() {
	if wake := w.setOver(); wake != nil {
		wake()
	}
}

// setOver marks the wait as over and returns its wake function, or nil if none is armed.
func (w *startWait) setOver() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := w.wake
	w.wake, w.over = nil, true
	return wake
}

func (w *startWait) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// arm registers wake, which is called when the wait ends.
func (w *startWait) arm(wake func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.wake = wake
	}
	return !w.over
}

// cancel ends the wait and returns its wake function, or nil if none is armed.
func (w *startWait) cancel() func() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancelReached()
	return w.setOver()
}
