package informer_test

import (
	"context"
	"sync"

	"github.com/listwatch/listwatch"
)

// A faultySource is a source whose watches can be interrupted and refused.
type faultySource struct {
	listwatch.Source

	mu      sync.Mutex
	refusal error // returned by Watch; if nil, watches are opened
	cut     chan struct{}
	end     error // returned by interrupted watches
	watches []listwatch.Query
	lists   int
}

func newFaultySource(s listwatch.Source) *faultySource {
	return &faultySource{Source: s, cut: make(chan struct{})}
}

// disconnect ends all watches with err. If refusal is not nil, new watches fail with that error
// until reconnect is called.
func (f *faultySource) disconnect(err, refusal error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end, f.refusal = err, refusal
	close(f.cut)
	f.cut = make(chan struct{})
}

// reconnect makes new watches succeed again.
func (f *faultySource) reconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = nil
}

func (f *faultySource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	f.mu.Lock()
	f.lists++
	f.mu.Unlock()
	return f.Source.List(ctx, q)
}

func (f *faultySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	f.mu.Lock()
	f.watches = append(f.watches, q)
	refusal, cut := f.refusal, f.cut
	f.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	w, err := f.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &faultyWatcher{w, f, cut}, nil
}

type faultyWatcher struct {
	listwatch.Watcher
	source *faultySource
	cut    chan struct{}
}

func (w *faultyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-w.cut:
			cancel()
		case <-stop:
		}
	}()
	n, err := w.Watcher.Next(within, dst)
	if err == context.Canceled && ctx.Err() == nil {
		w.source.mu.Lock()
		defer w.source.mu.Unlock()
		return 0, w.source.end
	}
	return n, err
}
