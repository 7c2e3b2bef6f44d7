package client

import (
	"context"
	"errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A watcher is the Watcher of a Remote. It is not a [listwatch.Poller], because it does not know
// the version of the server.
type watcher struct {
	queue  *eventqueue.Queue
	cancel context.CancelFunc // ends the goroutine that fills the queue
}

var _ reflector.Releaser = (*watcher)(nil)

// Next implements [listwatch.Watcher]. It returns queued events even if ctx has ended.
func (w *watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return w.queue.Next(ctx, dst)
}

// Queue returns the queue from which Next reads. A server reads from the queue itself, because it
// need not wait.
func (w *watcher) Queue() *eventqueue.Queue { return w.queue }

func (w *watcher) Release(events []listwatch.Event) { release(events) }

// Close implements [listwatch.Watcher]. From now on Next returns io.EOF.
func (w *watcher) Close() error {
	w.cancel()
	w.queue.Close()
	return nil
}

// A queueSink passes the events of a Reflector to a queue.
type queueSink struct {
	*eventqueue.Queue
	// hasReader is true once Watch has returned the watcher. Before that, there is no reader who
	// could make room.
	hasReader bool
}

// Begin implements [reflector.Sink]. If the state is requested again, restart has already emptied
// the queue.
func (q *queueSink) Begin(string) {}

// Take implements [reflector.Sink]. It waits while the queue is full.
func (q *queueSink) Take(events []listwatch.Event) error {
	q.Push(events)
	if q.hasReader {
		q.WaitForRoom()
	}
	return nil
}

// restart is called before the state is requested again. The watch can only start over if the
// reader has not received any event. Otherwise the new state may lack objects that the reader has
// received, and only the reader can drop them. If the initial events were cut short, the error
// quotes the cause but does not wrap it, because a wrapped io.EOF would look like a clean end.
func (q *queueSink) restart(cause error, at *reflector.ResumePoint) error {
	expired := &listwatch.Error{Code: listwatch.Expired, Op: "watch"}
	switch {
	case at.Synced:
		expired.Message = "the server no longer has version " + at.Version.String() +
			": it has an older state, or an unrelated one"
		expired.Err = cause
	case !q.Reset():
		expired.Message = "the connection ended within the initial events, so the state is incomplete; watch again"
		expired.Err = errors.New(cause.Error())
	default:
		return nil
	}
	return expired
}
