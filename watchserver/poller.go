package watchserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A framePoller is a Poller that also returns the caches for the frames of its events: refs[i] for
// dst[i]. The watchers of internal/history are framePollers. A watcher that wraps such a cursor and
// changes its events is not a framePoller, so its stream never sends the frame of an unchanged
// event.
type framePoller interface {
	listwatch.Poller
	PollFrames(dst []listwatch.Event, refs []frames.Ref) (int, error)
}

// asFramePoller returns w as a framePoller.
func asFramePoller(w listwatch.Watcher, log *slog.Logger) framePoller {
	switch p := w.(type) {
	case framePoller:
		return p
	case listwatch.Poller:
		return uncachedPoller{p}
	}
	return uncachedPoller{newQueuePoller(w, log)}
}

// An uncachedPoller is a framePoller whose events have no caches.
type uncachedPoller struct{ listwatch.Poller }

func (p uncachedPoller) PollFrames(dst []listwatch.Event, _ []frames.Ref) (int, error) {
	return p.Poll(dst)
}

// A queuePoller is the Poller over a Watcher whose events pass through a queue.
type queuePoller struct {
	*eventqueue.Queue
	close func() error
}

func (p queuePoller) Close() error { return p.close() }

// newQueuePoller turns any Watcher into a Poller. Unless w has a queue, a goroutine reads ahead.
func newQueuePoller(w listwatch.Watcher, log *slog.Logger) queuePoller {
	if queued, ok := w.(interface{ Queue() *eventqueue.Queue }); ok {
		return queuePoller{queued.Queue(), w.Close}
	}
	q := eventqueue.New(true)
	ctx, cancel := context.WithCancel(context.Background())
	go readAhead(ctx, w, q, log) // Close ends it
	return queuePoller{q, func() error {
		cancel()
		q.Close()
		return w.Close()
	}}
}

func readAhead(ctx context.Context, w listwatch.Watcher, q *eventqueue.Queue, log *slog.Logger) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("watchserver: panic in a watcher", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			q.End(errInternal())
		}
	}()
	var events [64]listwatch.Event
	for q.WaitForRoom() {
		n, err := w.Next(ctx, events[:])
		q.Push(events[:n])
		if err != nil {
			q.End(err)
		}
	}
}

// A failedPoller is the Poller of a watch that could not start.
type failedPoller struct{ err error }

func (f failedPoller) Poll([]listwatch.Event) (int, error)                  { return 0, f.err }
func (f failedPoller) Next(context.Context, []listwatch.Event) (int, error) { return 0, f.err }
func (f failedPoller) Wake(wake func())                                     { wake() }
func (f failedPoller) Progress() (p listwatch.Progress)                     { return p }
func (f failedPoller) Close() error                                         { return nil }

// errInternal is the error that a client receives after a panic.
func errInternal() error {
	return &listwatch.Error{Code: listwatch.Unknown, Op: "watch", Message: "internal error"}
}
