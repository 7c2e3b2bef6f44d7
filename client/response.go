package client

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

// A response is a [listwatch.Watcher] that reads the response to one watch request. It does not
// resume.
type response struct {
	// Immutable once the request has succeeded.
	connections *connections
	receiver    transport.Receiver
	candidate   *candidate
	opened      time.Time
	cancel      context.CancelFunc
	idle        *idleTimer  // runs only within Next, so it ignores slow readers
	interrupted atomic.Bool // the context of a call of Next has ended

	reading reading // owned by the reader

	mu sync.Mutex
	// Guarded by mu.
	closed bool
	// detach undoes attach: the end of the reader's context no longer closes the connection. It
	// is nil before the first call of Next.
	detach func() bool
}

// A reading is the progress of the reader of a response.
type reading struct {
	// initial is true until the initial events are complete.
	initial bool
	// difference is true if the initial events may be a difference.
	difference bool
	// projection is the projection of the query, unless the server applies it.
	projection listwatch.Projection
	// received is the number of frames received.
	received int
	// malformed is true if the server violated the protocol of the transport or of the framing.
	malformed bool
	// err is the error of the next call of Next.
	err error
	// done is the Done channel of the context whose end closes the connection.
	done <-chan struct{}
}

var _ reflector.Releaser = (*response)(nil)

// Next implements [listwatch.Watcher]. It waits for one event, and also returns the events that
// have arrived with it. The end of ctx closes the connection.
func (r *response) Next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	r.attach(ctx)
	r.idle.resume()
	defer r.idle.pause()
	for n < len(dst) && r.reading.err == nil {
		frame, ok, err := r.receive(n == 0)
		if !ok && err == nil {
			return n, nil
		}
		if err == nil {
			dst[n], err = r.event(frame)
		}
		if err != nil {
			r.end(ctx, err)
			break
		}
		n++
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.reading.err
}

// attach makes the end of ctx close the connection.
func (r *response) attach(ctx context.Context) {
	if done := ctx.Done(); done == nil || done == r.reading.done {
		return
	}
	r.reading.done = ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detach != nil {
		r.detach()
	}
	if !r.closed {
		r.detach = context.AfterFunc(ctx, func() {
			r.interrupted.Store(true)
			r.cancel()
		})
	}
}

// errInterrupted is the error of Next if the context of an earlier call has ended.
var errInterrupted = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "receive",
	Message: "the context of an earlier call of Next has ended and closed the connection",
}

// receive returns the next frame. If wait is false, it returns only a frame that has arrived
// already.
func (r *response) receive(wait bool) (frame framing.WatchEvent, ok bool, err error) {
	if wait {
		frame, err = r.receiver.Receive()
		ok = err == nil
	} else if b, isBuffered := r.receiver.(framing.Buffered); isBuffered {
		frame, ok = b.Buffered()
	}
	if ok {
		r.reading.received++
	}
	r.reading.malformed = listwatch.CodeOf(err) == listwatch.Corrupt
	return frame, ok, err
}

// JoinsEvents reports whether one call of Next returns all events that the server has sent together
// and that have arrived. The relay uses it.
func (r *response) JoinsEvents() bool {
	receiver, ok := r.receiver.(interface{ JoinsEvents() bool })
	return ok && receiver.JoinsEvents()
}

// event converts a frame to an event.
func (r *response) event(frame framing.WatchEvent) (listwatch.Event, error) {
	e, err := frame.EventOf(r.connections.encoding)
	if err != nil {
		return e, err
	}
	remote := r.connections.remote
	if r.connections.encoding == nil || e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
		remote.learnFrom(e.Object)
	}
	switch e.Type {
	case listwatch.Added, listwatch.Modified, listwatch.Deleted:
		e.Object = r.reading.projection.Reduce(e.Object)
	}
	e.Initial = r.reading.initial &&
		(e.Type == listwatch.Added || e.Type == listwatch.Deleted && r.reading.difference)
	if r.reading.initial && (e.Type == listwatch.Bookmark || e.Type == listwatch.Synced) {
		r.reading.initial = false
		if e.Type == listwatch.Bookmark {
			// Some servers do not mark the end of the initial events. Their first bookmark follows
			// the initial events, so treat it as Synced.
			e = listwatch.NewSynced(listwatch.Describe(remote), listwatch.State{Version: e.Version}, 0)
		}
	}
	return e, nil
}

// end records that err has ended the response.
func (r *response) end(ctx context.Context, err error) {
	switch {
	case r.isClosed():
		err = io.EOF
	case ctx.Err() != nil:
		err = ctx.Err()
	case r.interrupted.Load():
		err = errInterrupted
	default:
		if r.idle.expired.Load() {
			err = errIdle
		}
		r.connections.ended(r, err)
	}
	r.reading.err = err
}

func (r *response) Release(events []listwatch.Event) { release(events) }

// release reuses the memory of the objects of events.
func release(events []listwatch.Event) {
	var buffers [64][]byte
	var labels [len(buffers)]map[string]string
	for len(events) > 0 {
		n := min(len(events), len(buffers))
		for i, e := range events[:n] {
			buffers[i], e.Object.Data = e.Object.Data, nil
			labels[i], e.Object.Labels = e.Object.Labels, nil
		}
		pool.PutBuffers(buffers[:n]...)
		pool.PutMaps(labels[:n]...)
		events = events[n:]
	}
}

func (r *response) Close() error {
	r.mu.Lock()
	r.closed = true
	detach := r.detach
	r.mu.Unlock()
	if detach != nil {
		detach()
	}
	r.idle.stop()
	if r.receiver != nil {
		_ = r.receiver.Close() // the response is no longer read, so an error does not matter
	}
	r.cancel()
	return nil
}

func (r *response) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
