package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// A watcher is one watch, and checks its events.
type watcher struct {
	writer   *writer
	recorder *recorder

	mu sync.Mutex // lock order: mu before recorder.mu
	// Guarded by mu.
	seen                   []bool // by sequence number
	last                   listwatch.Version
	duplicates, outOfOrder int
	err                    error // the error that ended the watch
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context, remote *client.Remote) {
	err := w.watch(ctx, remote)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; errors.Is(err, io.EOF) {
		w.err = errors.New("the server ended the watch")
	}
}

func (w *watcher) watch(ctx context.Context, remote *client.Remote) error {
	begin := time.Now()
	stream, err := remote.Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	var batch [64]listwatch.Event
	for first := true; ; first = false {
		n, err := stream.Next(ctx, batch[:])
		if err != nil {
			return err
		}
		now := time.Now()
		if first {
			w.recorder.update(func() { w.recorder.firstEvent.record(now.Sub(begin)) })
		}
		w.receive(batch[:n], now, begin)
	}
}

// receive checks and records events that arrived together.
func (w *watcher) receive(events []listwatch.Event, now, begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var latencies [64]time.Duration
	ours := latencies[:0]
	var initial, foreign, bookmarks int64
	synced := false
	for _, e := range events {
		switch {
		case e.Type == listwatch.Bookmark:
			bookmarks++
		case e.Type == listwatch.Synced:
			synced = true
		case e.Initial:
			initial++
			continue
		default:
			sent, own := w.check(e)
			if own {
				ours = append(ours, now.Sub(sent))
			} else {
				foreign++
			}
		}
		if e.Version < w.last {
			w.outOfOrder++
		}
		w.last = max(w.last, e.Version)
	}
	w.recorder.update(func() {
		r := w.recorder
		r.initial, r.foreign, r.bookmarks = r.initial+initial, r.foreign+foreign, r.bookmarks+bookmarks
		r.received += int64(len(ours))
		r.intervalEvents += int64(len(ours)) + foreign
		for _, d := range ours {
			r.all.record(d)
			r.interval.record(d)
		}
		if synced {
			r.syncedWatchers++
			r.synced.record(now.Sub(begin))
		}
	})
}

// check records the arrival of an event. It returns the time of the write that caused the event. It
// returns false for deletions, and for objects that another program has written.
func (w *watcher) check(e listwatch.Event) (time.Time, bool) {
	n, ok := w.writer.sequence(e.Object)
	if !ok || e.Type == listwatch.Deleted {
		return time.Time{}, false
	}
	sent, ok := w.writer.log.sentAt(n)
	if !ok {
		return time.Time{}, false
	}
	for len(w.seen) <= n {
		w.seen = append(w.seen, false)
	}
	if w.seen[n] {
		w.duplicates++
	}
	w.seen[n] = true
	return sent, true
}

// missed returns the number of acknowledged writes that the watcher has not received.
func (w *watcher) missed(acknowledged []bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, ok := range acknowledged {
		if ok && (i >= len(w.seen) || !w.seen[i]) {
			n++
		}
	}
	return n
}

// A fleet holds the watchers of a run.
type fleet struct {
	watchers []*watcher
	group    sync.WaitGroup
	cancel   context.CancelFunc
}

// openFleet opens n watches, 64 at a time, and returns when all have their initial events.
func openFleet(ctx context.Context, n int, remote *client.Remote, w *writer, timeout time.Duration) (*fleet, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fleet{cancel: cancel}
	for range n {
		f.watchers = append(f.watchers, &watcher{writer: w, recorder: w.recorder})
	}
	const step = 64
	for opened := 0; opened < n; opened += step {
		next := min(opened+step, n)
		for _, each := range f.watchers[opened:next] {
			f.group.Go(func() { each.run(life, remote) })
		}
		if err := f.await(ctx, next, timeout); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// await waits until n watchers have their initial events.
func (f *fleet) await(ctx context.Context, n int, timeout time.Duration) error {
	r := f.watchers[0].recorder
	var synced int
	var last error
	done, err := poll(ctx, timeout, func() (int64, bool, error) {
		failed := f.firstError() // before r.mu is locked, as the lock order requires
		r.mu.Lock()
		defer r.mu.Unlock()
		synced, last = r.syncedWatchers, r.lastError
		return int64(synced) + r.initial, synced >= n, failed
	})
	if err == nil && !done {
		err = fmt.Errorf("%d of %d watchers have the initial events after %v without progress: %w",
			synced, len(f.watchers), timeout, cmp.Or(last, errors.New("the server sent nothing")))
	}
	return err
}

// firstError returns the error that ended a watch, or nil if no watch has ended.
func (f *fleet) firstError() error {
	for _, w := range f.watchers {
		w.mu.Lock()
		err := w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends all watches, and waits for them.
func (f *fleet) close() {
	f.cancel()
	f.group.Wait()
}
