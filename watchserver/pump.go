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
)

// A pump makes a Poller of any Watcher, by a goroutine that reads ahead a little.
type pump struct {
	watcher listwatch.Watcher
	log     *slog.Logger
	cancel  context.CancelFunc
	room    chan struct{} // one place; filled when the reader has made room

	mu sync.Mutex
	// Guarded by mu.
	queue  []listwatch.Event
	err    error // after the queue
	wake   func()
	closed bool

	position listwatch.Version // owned by the reader
}

// readAhead is how many events a pump holds.
const readAhead = 256

func newPump(w listwatch.Watcher, log *slog.Logger) *pump {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pump{watcher: w, log: log, cancel: cancel, room: make(chan struct{}, 1)}
	go p.run(ctx) // Close ends it
	return p
}

func (p *pump) run(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("watchserver: panic in a watcher", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			p.put(nil, &listwatch.Error{Code: listwatch.Unknown, Op: "watch", Message: "internal error"})
		}
	}()
	var batch [64]listwatch.Event
	for {
		n, err := p.watcher.Next(ctx, batch[:])
		if !p.put(batch[:n], err) {
			return
		}
		for p.full() {
			select {
			case <-p.room:
			case <-ctx.Done():
				return
			}
		}
	}
}

// put adds what was read and wakes the reader. It returns false when that was the end.
func (p *pump) put(events []listwatch.Event, err error) bool {
	p.mu.Lock()
	p.queue = append(p.queue, events...)
	p.err = err
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	if wake != nil {
		wake()
	}
	return err == nil
}

func (p *pump) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) >= readAhead
}

// Poll implements [listwatch.Poller].
func (p *pump) Poll(dst []listwatch.Event) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, io.EOF
	}
	n := copy(dst, p.queue)
	if n == 0 {
		return 0, p.err
	}
	clear(p.queue[:n])
	if p.queue = p.queue[n:]; len(p.queue) == 0 {
		p.queue = nil
	}
	for _, e := range dst[:n] {
		switch e.Type {
		case listwatch.Bookmark, listwatch.Synced:
			p.position = e.Version
		default:
			// More of the same version may come.
			if !e.Initial && e.Version > 0 {
				p.position = max(p.position, e.Version-1)
			}
		}
	}
	select {
	case p.room <- struct{}{}:
	default:
	}
	return n, nil
}

// Wake implements [listwatch.Poller].
func (p *pump) Wake(f func()) {
	p.mu.Lock()
	ready := len(p.queue) > 0 || p.err != nil || p.closed
	if !ready {
		p.wake = f
	}
	p.mu.Unlock()
	if ready {
		f()
	}
}

// Position implements [listwatch.Poller]. Of a Watcher no more is known than what it has returned, so there are no bookmarks but its own.
func (p *pump) Position() listwatch.Version { return p.position }

// Next implements [listwatch.Watcher]; a stream polls.
func (p *pump) Next(context.Context, []listwatch.Event) (int, error) {
	return 0, errors.ErrUnsupported
}

// Close implements [listwatch.Watcher].
func (p *pump) Close() error {
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

// failed is the Poller of a watch that could not begin.
type failed struct{ err error }

func (f failed) Poll([]listwatch.Event) (int, error)                  { return 0, f.err }
func (f failed) Next(context.Context, []listwatch.Event) (int, error) { return 0, f.err }
func (f failed) Wake(wake func())                                     { wake() }
func (f failed) Position() listwatch.Version                          { return 0 }
func (f failed) Close() error                                         { return nil }
