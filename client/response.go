package client

import (
	"context"
	"io"
	"sync"
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
	idle        *idleTimer // runs only within Next: the server is not to blame for a slow reader

	reading reading // owned by the reader

	mu sync.Mutex
	// Guarded by mu.
	closed bool
	// detach undoes that the end of the reader's context closes the connection. It is nil before
	// the first call of Next.
	detach func() bool
}

// A reading is the progress of the reader of a response.
type reading struct {
	// initial is true until the initial events are complete.
	initial bool
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
func (resp *response) Next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	resp.attach(ctx)
	resp.idle.resume()
	defer resp.idle.pause()
	for n < len(dst) && resp.reading.err == nil {
		frame, ok, err := resp.receive(n == 0)
		if !ok && err == nil {
			return n, nil
		}
		if err == nil {
			dst[n], err = resp.event(frame)
		}
		if err != nil {
			resp.end(ctx, err)
			break
		}
		n++
	}
	if n > 0 {
		return n, nil
	}
	return 0, resp.reading.err
}

// attach makes the end of ctx close the connection.
func (resp *response) attach(ctx context.Context) {
	if done := ctx.Done(); done == nil || done == resp.reading.done {
		return
	}
	resp.reading.done = ctx.Done()
	resp.mu.Lock()
	defer resp.mu.Unlock()
	if resp.detach != nil {
		resp.detach()
	}
	if !resp.closed {
		resp.detach = context.AfterFunc(ctx, resp.cancel)
	}
}

// receive returns the next frame. If wait is false, it returns only a frame that has arrived
// already.
func (resp *response) receive(wait bool) (frame framing.WatchEvent, ok bool, err error) {
	if wait {
		frame, err = resp.receiver.Receive()
		ok = err == nil
	} else if b, isBuffered := resp.receiver.(framing.Buffered); isBuffered {
		frame, ok = b.Buffered()
	}
	if ok {
		resp.reading.received++
	}
	resp.reading.malformed = listwatch.CodeOf(err) == listwatch.Corrupt
	return frame, ok, err
}

// event converts a frame to an event.
func (resp *response) event(frame framing.WatchEvent) (listwatch.Event, error) {
	e, err := frame.TrustedEvent()
	if err != nil {
		return e, err
	}
	r := resp.connections.remote
	r.learnFrom(e.Object)
	if resp.reading.initial && (e.Type == listwatch.Bookmark || e.Type == listwatch.Synced) {
		resp.reading.initial = false
		if e.Type == listwatch.Bookmark {
			// Some servers do not mark the end of the initial events. Their first bookmark follows
			// the initial events, so treat it as Synced.
			e = listwatch.NewBookmark(listwatch.Describe(r), e.Version, true)
		}
	}
	return e, nil
}

// end records that err has ended the response.
func (resp *response) end(ctx context.Context, err error) {
	switch {
	case resp.isClosed():
		err = io.EOF
	case ctx.Err() != nil:
		err = ctx.Err()
	default:
		if resp.idle.expired.Load() {
			err = errIdle
		}
		resp.connections.ended(resp, err)
	}
	resp.reading.err = err
}

// Release implements [reflector.Releaser].
func (resp *response) Release(events []listwatch.Event) { release(events) }

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

// Close implements [listwatch.Watcher].
func (resp *response) Close() error {
	resp.mu.Lock()
	resp.closed = true
	detach := resp.detach
	resp.mu.Unlock()
	if detach != nil {
		detach()
	}
	resp.idle.stop()
	if resp.receiver != nil {
		_ = resp.receiver.Close() // the response is no longer read, so an error does not matter
	}
	resp.cancel()
	return nil
}

func (resp *response) isClosed() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.closed
}
