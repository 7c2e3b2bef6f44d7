package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kube "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/listwatch/listwatch"
)

const (
	// bookmarkInterval is the interval of bookmarks in watches that request them.
	bookmarkInterval = 500 * time.Millisecond
	// resultBuffer is the maximum number of pending events, which can be read even after Stop.
	resultBuffer = 100
)

// A watcher implements [watch.Interface] for a watch of our store. Its goroutine reads the
// [listwatch.Watcher], and returns when the context of Watch ends, when Stop is called, or
// when the watch ends.
type watcher struct {
	// Immutable after construction.
	coder
	results   chan watch.Event
	cancel    context.CancelFunc
	bookmarks bool

	bookmarked listwatch.Version // the version of the last bookmark; owned by run
}

// Watch implements [kube.Interface]. It returns an error if o is invalid. Any other error, such as
// an expired version, is the first event of the watch.
func (s *Storage) Watch(ctx context.Context, path string, o kube.ListOptions) (watch.Interface, error) {
	q, err := s.watchQuery(path, o)
	if err != nil {
		return nil, err
	}
	source, err := s.backend.Watch(ctx, q)
	if errors.Is(err, listwatch.Invalid) {
		return nil, kubeError(err)
	}
	w := &watcher{coder: s.coder, results: make(chan watch.Event, resultBuffer), bookmarks: o.ProgressNotify ||
		o.Predicate.AllowWatchBookmarks}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx, source, err)
	flowcontrol.WatchInitialized(ctx)
	return w, nil
}

// Stop implements [watch.Interface].
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements [watch.Interface].
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

func (w *watcher) run(ctx context.Context, source listwatch.Watcher, err error) {
	defer close(w.results)
	defer w.cancel()
	if err == nil {
		err = w.sendAll(ctx, source)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		w.send(ctx, watch.Event{Type: watch.Error, Object: statusOf(err)})
	}
}

// sendAll sends all events of source until it ends.
func (w *watcher) sendAll(ctx context.Context, source listwatch.Watcher) error {
	defer func() { _ = source.Close() }()
	batch := make([]listwatch.Event, 16)
	for ctx.Err() == nil {
		n, err := w.next(ctx, source, batch)
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			out, err := w.event(ctx, e)
			if err != nil {
				return err
			}
			w.send(ctx, out)
		}
	}
	return nil
}

// next calls source.Next. If bookmarks are requested, next returns a bookmark after
// bookmarkInterval without an event, provided that the position of the watch has advanced.
func (w *watcher) next(ctx context.Context, source listwatch.Watcher, batch []listwatch.Event) (int, error) {
	if !w.bookmarks {
		return source.Next(ctx, batch)
	}
	wait, cancel := context.WithTimeout(ctx, bookmarkInterval)
	defer cancel()
	n, err := source.Next(wait, batch)
	if n > 0 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return n, err
	}
	if p, ok := source.(listwatch.Poller); ok && p.Progress().Version > w.bookmarked {
		batch[0] = listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: p.Progress().Version})
		return 1, nil
	}
	return 0, nil
}

func (w *watcher) send(ctx context.Context, e watch.Event) {
	select {
	case w.results <- e:
	case <-ctx.Done():
	}
}

var eventTypes = [...]watch.EventType{
	listwatch.Added: watch.Added, listwatch.Modified: watch.Modified, listwatch.Deleted: watch.Deleted,
	listwatch.Bookmark: watch.Bookmark, listwatch.Synced: watch.Bookmark,
}

// event converts e to an event of Kubernetes.
func (w *watcher) event(ctx context.Context, e listwatch.Event) (watch.Event, error) {
	out := watch.Event{Type: eventTypes[e.Type], Object: w.New()}
	if out.Type == watch.Bookmark {
		w.bookmarked = e.Version
		return out, setBookmark(out.Object, e)
	}
	_, err := w.decode(ctx, e.Object, out.Object)
	if err != nil && e.Type == listwatch.Deleted {
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Reason:  metav1.StatusReasonStoreReadError,
			Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
		}}
	}
	return out, err
}

// setBookmark makes o the object of the bookmark e.
func setBookmark(o runtime.Object, e listwatch.Event) error {
	if e.Type == listwatch.Synced {
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return versioner.UpdateObject(o, uint64(e.Version))
}
