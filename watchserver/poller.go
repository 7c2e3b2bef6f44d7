package watchserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A framePoller is a Poller that also returns the caches for the frames of its events: refs[i] for
// dst[i]. The cursors of internal/history are framePollers. A watcher that wraps such a cursor and
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
	return uncachedPoller{newBufferedPoller(w, log)}
}

// An uncachedPoller is a framePoller whose events have no caches.
type uncachedPoller struct{ listwatch.Poller }

func (p uncachedPoller) PollFrames(dst []listwatch.Event, _ []frames.Ref) (int, error) {
	return p.Poll(dst)
}

// PendingError implements pendingPoller.
func (p uncachedPoller) PendingError() error {
	if inner, ok := p.Poller.(pendingPoller); ok {
		return inner.PendingError()
	}
	return nil
}

// A bufferedPoller turns any Watcher into a Poller: a goroutine reads ahead and buffers the
// events.
type bufferedPoller struct {
	watcher    listwatch.Watcher
	log        *slog.Logger
	cancel     context.CancelFunc
	spaceFreed chan struct{} // capacity 1; holds a token when Poll has taken events from buffer

	mu sync.Mutex
	// Guarded by mu.
	buffer []listwatch.Event
	err    error // returned after the events of buffer
	wake   func()
	closed bool

	position listwatch.Version // owned by the caller of Poll
}

// maxBuffered is the number of buffered events at which a bufferedPoller stops reading.
const maxBuffered = 256

func newBufferedPoller(w listwatch.Watcher, log *slog.Logger) *bufferedPoller {
	ctx, cancel := context.WithCancel(context.Background())
	p := &bufferedPoller{watcher: w, log: log, cancel: cancel, spaceFreed: make(chan struct{}, 1)}
	go p.read(ctx) // Close ends it
	return p
}

func (p *bufferedPoller) read(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("watchserver: panic in a watcher", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			p.put(nil, errInternal())
		}
	}()
	var events [64]listwatch.Event
	for {
		n, err := p.watcher.Next(ctx, events[:])
		p.put(events[:n], err)
		if err != nil {
			return
		}
		for p.isFull() {
			select {
			case <-p.spaceFreed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// put buffers events, followed by err if it is not nil, and calls the function registered by Wake.
func (p *bufferedPoller) put(events []listwatch.Event, err error) {
	p.mu.Lock()
	p.buffer = append(p.buffer, events...)
	p.err = err
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	if wake != nil {
		wake()
	}
}

func (p *bufferedPoller) isFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buffer) >= maxBuffered
}

// Poll implements [listwatch.Poller].
func (p *bufferedPoller) Poll(dst []listwatch.Event) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, io.EOF
	}
	n := copy(dst, p.buffer)
	if n == 0 {
		return 0, p.err
	}
	clear(p.buffer[:n])
	if p.buffer = p.buffer[n:]; len(p.buffer) == 0 {
		p.buffer = nil
	}
	for _, e := range dst[:n] {
		switch e.Type {
		case listwatch.Bookmark, listwatch.Synced:
			p.position = e.Version
		default:
			// Another event of the same version may follow, so the position is the version before
			// this event.
			if !e.Initial && e.Version > 0 {
				p.position = max(p.position, e.Version-1)
			}
		}
	}
	select {
	case p.spaceFreed <- struct{}{}:
	default:
	}
	return n, nil
}

// Wake implements [listwatch.Poller].
func (p *bufferedPoller) Wake(f func()) {
	p.mu.Lock()
	ready := len(p.buffer) > 0 || p.err != nil || p.closed
	if !ready {
		p.wake = f
	}
	p.mu.Unlock()
	if ready {
		f()
	}
}

// Position implements [listwatch.Poller]. The position advances only with the events and bookmarks
// of the watcher. So a stream forwards the watcher's bookmarks and adds no newer bookmarks of its
// own.
func (p *bufferedPoller) Position() listwatch.Version { return p.position }

// Next implements [listwatch.Watcher]. It always returns an error, because a stream calls Poll
// instead.
func (p *bufferedPoller) Next(context.Context, []listwatch.Event) (int, error) {
	return 0, errors.ErrUnsupported
}

// Close implements [listwatch.Watcher].
func (p *bufferedPoller) Close() error {
	p.mu.Lock()
	p.closed = true
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	p.cancel()
	if wake != nil {
		wake()
	}
	return p.watcher.Close()
}

// A failedPoller is the Poller of a watch that could not start.
type failedPoller struct{ err error }

func (f failedPoller) Poll([]listwatch.Event) (int, error)                  { return 0, f.err }
func (f failedPoller) Next(context.Context, []listwatch.Event) (int, error) { return 0, f.err }
func (f failedPoller) Wake(wake func())                                     { wake() }
func (f failedPoller) Position() listwatch.Version                          { return 0 }
func (f failedPoller) Close() error                                         { return nil }

// A pendingPoller is a Poller that may be waiting for a version in the future. PendingError
// returns the error to report in that case, and otherwise nil.
type pendingPoller interface{ PendingError() error }

// A statePoller is a Poller whose Poll may return fewer events than are pending, and no error,
// while IsReadingState is true.
type statePoller interface{ IsReadingState() bool }

// errInternal is the error that a client receives after a panic.
func errInternal() error {
	return &listwatch.Error{Code: listwatch.Unknown, Op: "watch", Message: "internal error"}
}
