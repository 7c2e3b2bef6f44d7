package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// reflect runs a Reflector until the suite closes the watch.
func reflect(ctx context.Context, r request) {
	client, o := newClient(r)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	store := &store{id: r.ID, initial: r.ResourceVersion == "", bookmarks: o.AllowWatchBookmarks, stop: stop}
	lw := watcher(client, o)
	lw.ListWithContextFunc = func(ctx context.Context, own metav1.ListOptions) (runtime.Object, error) {
		own.LabelSelector, own.FieldSelector = o.LabelSelector, o.FieldSelector
		return client.List(ctx, own)
	}
	var lister cache.ListerWatcher = lw
	if !store.initial {
		lister = startAt(r, lw, stop)
	}
	reflector := cache.NewReflectorWithOptions(lister, &unstructured.Unstructured{}, store, cache.ReflectorOptions{})
	reflector.RunWithContext(ctx)
}

// startAt makes a Reflector begin at the version of r. A Reflector begins with a list, and lists
// again after each failed watch. startAt replaces these lists with empty ones. The first has the
// version of r, and each further one has the last version that the Reflector knows. As the control
// hook demands, the watch ends if the history is lost.
func startAt(r request, lw *cache.ListWatch, stop func()) cache.ListerWatcher {
	lw.ListWithContextFunc = func(_ context.Context, own metav1.ListOptions) (runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "ThingList", "apiVersion": "v1"}}
		if list.SetResourceVersion(own.ResourceVersion); own.ResourceVersion == "" || own.ResourceVersion == "0" {
			list.SetResourceVersion(r.ResourceVersion)
		}
		return list, nil
	}
	watches := lw.WatchFuncWithContext
	lw.WatchFuncWithContext = func(ctx context.Context, own metav1.ListOptions) (watch.Interface, error) {
		lost := func(err error) {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				stop()
				fail(r.ID, err)
			}
		}
		w, err := watches(ctx, own)
		if err != nil {
			lost(err)
			return nil, err
		}
		return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
			if e.Type == watch.Error {
				lost(apierrors.FromObject(e.Object))
			}
			return e, true
		}), nil
	}
	return listFirst{lw}
}

// listFirst makes a Reflector begin with a list and not with a watch. startAt needs the list to set
// the version.
type listFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported disables streaming lists.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// A store reports what a Reflector does to its store.
type store struct {
	id int
	// initial and bookmarks report whether the suite wants the current state, and its end.
	initial, bookmarks, synced bool
	stop                       func()
}

func (s *store) event(kind string, object any) error {
	send(reply{"id": s.id, "event": reply{"type": kind, "object": object}})
	return nil
}

// Add, Update, Delete, Replace and Resync implement cache.ReflectorStore.
func (s *store) Add(o any) error    { return s.event("ADDED", o) }
func (s *store) Update(o any) error { return s.event("MODIFIED", o) }
func (s *store) Delete(o any) error { return s.event("DELETED", o) }
func (s *store) Resync() error      { return nil }

func (s *store) Replace(objects []any, version string) error {
	if !s.initial {
		return nil
	}
	if s.synced { // the suite asks for the new state by another watch
		s.stop()
		fail(s.id, apierrors.NewResourceExpired("the reflector lists again"))
		return nil
	}
	s.synced = true
	for _, o := range objects {
		_ = s.Add(o)
	}
	if !s.bookmarks {
		return nil
	}
	return s.event("BOOKMARK", reply{"metadata": reply{
		"resourceVersion": version, "annotations": reply{metav1.InitialEventsAnnotationKey: "true"},
	}})
}
