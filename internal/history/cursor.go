package history

import (
	"context"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A Cursor is one watcher of a [Log] or of a [Union]. It is a [listwatch.Poller]. Close may be
// called from any goroutine. All other methods must be called by one reader.
type Cursor struct {
	last lastStage // immutable

	// Owned by the reader.
	stage  stage // last, or a stage before it
	signal signal
}

// A stage is a step in the life of a Cursor, such as the initial events. The package comment has a
// diagram, and internal/models/cursor.pml is a model of the stages.
type stage interface {
	// read appends events to b, and returns the stage that continues. If that is the stage itself,
	// it has no more events for this batch. After an error, the cursor has failed.
	read(b batch) (batch, stage, error)
	// progress implements [listwatch.Poller.Progress].
	progress() listwatch.Progress
	// arm requests one call of wake when read may have something to return. If it already may, arm
	// returns false and does not call wake.
	arm(wake func()) bool
}

// A lastStage is the stage that a Cursor reaches in the end. Its read may return an earlier stage
// again.
type lastStage interface {
	stage
	// close and isClosed may be called from any goroutine.
	close()
	isClosed() bool
}

// A failed stage returns an error in place of the events of a stage.
type failed struct {
	stage
	err error
}

func (f *failed) read(b batch) (batch, stage, error) { return b, nil, f.err }
func (f *failed) arm(func()) bool                    { return false }

var _ listwatch.Poller = (*Cursor)(nil)

// Poll implements [listwatch.Poller].
func (c *Cursor) Poll(dst []listwatch.Event) (n int, err error) { return c.PollFrames(dst, nil) }

// PollFrames is like Poll, and sets refs[i] to the frames of dst[i]. If refs is not nil, it must be
// as long as dst.
func (c *Cursor) PollFrames(dst []listwatch.Event, refs []frames.Ref) (n int, err error) {
	if c.last.isClosed() {
		return 0, io.EOF
	}
	b := batch{events: dst, refs: refs, visits: maxVisits}
	for !b.isFull() {
		var next stage
		b, next, err = c.stage.read(b)
		if next == c.stage && err == nil {
			break
		}
		if err == nil {
			c.stage = next
			continue
		}
		if next != nil { // c has not failed before
			c.stage = &failed{next, err}
		}
		if b.n == 0 {
			return 0, err
		}
		break
	}
	return b.n, nil
}

// Next implements [listwatch.Watcher].
func (c *Cursor) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return c.signal.next(ctx, c, dst)
}

// Progress implements [listwatch.Poller].
func (c *Cursor) Progress() listwatch.Progress { return c.stage.progress() }

// Wake implements [listwatch.Poller].
func (c *Cursor) Wake(f func()) {
	if !c.stage.arm(f) {
		f()
	}
}

// Close implements [listwatch.Watcher].
func (c *Cursor) Close() error {
	c.last.close()
	return nil
}

// maxVisits limits the objects, departures and records that one Poll visits before it reads the
// feed, so that a selective reader of a large collection does not occupy a processor, or a
// connection that other watches share, for long. Until then, Wake calls its function at once.
// Comparing the objects of a record counts as comparisonVisits.
const (
	maxVisits        = 8192
	comparisonVisits = 64
)

// A batch holds the events that one call of PollFrames returns.
type batch struct {
	events []listwatch.Event
	refs   []frames.Ref // nil if the caller does not need frames
	n      int          // the number of events so far
	visits int          // the number of objects, departures and records that may still be visited
}

func (b *batch) isFull() bool { return b.n == len(b.events) }

// room returns the number of events that may still be put into b.
func (b *batch) room() int { return len(b.events) - b.n }

// put appends e to b, which must not be full.
func (b *batch) put(e listwatch.Event, ref frames.Ref) {
	b.events[b.n] = e
	if b.refs != nil {
		b.refs[b.n] = ref
	}
	b.n++
}
