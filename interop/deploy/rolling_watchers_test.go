package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const widgetsPath = "/apis/demo.example.com/v1/namespaces/default/widgets"

// Each object contains the time of its write, as a duration since start.
var start = time.Now()

// A rollingWatcher checks that one watcher receives every write of every object once and in order.
type rollingWatcher struct {
	name string
	stop func() // ends the watch and waits for its goroutine

	mu sync.Mutex
	// Guarded by mu.
	received   int
	counts     map[string]int64 // the number of the newest received write of each object
	version    listwatch.Version
	delays     []time.Duration
	violations []string
	changed    chan struct{} // closed and replaced after each change
}

func newRollingWatcher(name string) *rollingWatcher {
	return &rollingWatcher{name: name, counts: make(map[string]int64), changed: make(chan struct{})}
}

// receive records that w received version v of the object with the given name. count and at are the
// number and the time of the write, which the object contains. The time is a duration since start.
func (w *rollingWatcher) receive(name string, initial bool, v listwatch.Version, count int64, at time.Duration) {
	delay := time.Since(start) - at
	w.mu.Lock()
	defer w.mu.Unlock()
	if !initial {
		last, known := w.counts[name]
		// If the response to a write is lost, the writer repeats the write, so a number may occur
		// twice.
		if count != last+1 && count != last || !known {
			w.violations = append(w.violations,
				fmt.Sprintf("received write %d of %s after write %d", count, name, last))
		}
		if v <= w.version {
			w.violations = append(w.violations, fmt.Sprintf("received version %d after %d", v, w.version))
		}
		w.version = v
		w.delays = append(w.delays, delay)
	}
	w.counts[name] = count
	w.received++
	w.notifyLocked()
}

func (w *rollingWatcher) violation(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, err.Error())
	w.notifyLocked()
}

// notifyLocked wakes await. The caller must hold mu.
func (w *rollingWatcher) notifyLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until condition returns true or w has found a violation, which the test reports at
// the end. await holds mu while it calls condition.
func (w *rollingWatcher) await(t *testing.T, condition func() bool) {
	t.Helper()
	late := time.After(readyTimeout)
	for {
		w.mu.Lock()
		done, changed := condition() || len(w.violations) > 0, w.changed
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s did not receive all writes within %v; it has %v", w.name, readyTimeout, w.counts)
		}
	}
}

// has reports whether w has received the newest write of each object. last contains the numbers of
// these writes. The caller must hold mu.
func (w *rollingWatcher) has(last map[string]int64) bool {
	for name, count := range last {
		if w.counts[name] < count {
			return false
		}
	}
	return true
}

// startWatchers starts watchers over each transport, and an informer of client-go.
func (s *site) startWatchers() []*rollingWatcher {
	all := []*rollingWatcher{s.startInformer()}
	for name, newTransport := range map[string]func() transport.Client{
		"chunked":   func() transport.Client { return &chunked.Client{} },
		"websocket": func() transport.Client { return &websocket.Client{} },
		"h2":        func() transport.Client { return &h2.Client{} },
	} {
		addr := s.front
		if name == "h2" {
			addr = s.frontH2
		}
		remote := s.remote(addr, newTransport())
		for i := range watchesPerTransport {
			all = append(all, s.startWatcher(fmt.Sprint(name, "-", i), remote))
		}
	}
	return all
}

func (s *site) remote(addr string, transports ...transport.Client) *client.Remote {
	return &client.Remote{
		URL: "http://" + addr + widgetsPath, Transports: transports,
		Header: func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + s.token}}, nil
		},
	}
}

func (s *site) startWatcher(name string, remote *client.Remote) *rollingWatcher {
	w := newRollingWatcher(name)
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	w.stop = func() { cancel(); wg.Wait() }
	wg.Go(func() {
		stream, err := remote.Watch(ctx, listwatch.Query{Bookmarks: true})
		if err != nil {
			w.violation(err)
			return
		}
		defer stream.Close()
		for e, err := range listwatch.All(ctx, stream) {
			if err != nil {
				if ctx.Err() == nil {
					w.violation(fmt.Errorf("the watch ended: %w", err))
				}
				return
			}
			if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
				continue
			}
			var object unstructured.Unstructured
			if err := object.UnmarshalJSON(e.Object.Data); err != nil {
				w.violation(err)
				return
			}
			w.receiveObject(&object, e.Initial, e.Version)
		}
	})
	return w
}

// receiveObject records an object if one of the writers wrote it. Other objects have no spec.count.
func (w *rollingWatcher) receiveObject(o *unstructured.Unstructured, initial bool, v listwatch.Version) {
	count, isWriters, err := unstructured.NestedInt64(o.Object, "spec", "count")
	at, _, err2 := unstructured.NestedInt64(o.Object, "spec", "at")
	if err := errors.Join(err, err2); err != nil {
		w.violation(err)
		return
	}
	if isWriters {
		w.receive(o.GetName(), initial, v, count, time.Duration(at))
	}
}

// startInformer starts an informer of client-go.
func (s *site) startInformer() *rollingWatcher {
	w := newRollingWatcher("client-go")
	dyn, err := dynamic.NewForConfig(&rest.Config{Host: "http://" + s.front, BearerToken: s.token})
	if err != nil {
		s.t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	informer := dynamicinformer.NewFilteredDynamicInformer(dyn, resource, metav1.NamespaceDefault, 0, cache.Indexers{},
		nil).Informer()
	handle := func(object any, initial bool) {
		o := object.(*unstructured.Unstructured)
		v, err := listwatch.ParseVersion(o.GetResourceVersion())
		if err != nil {
			w.violation(err)
			return
		}
		w.receiveObject(o, initial, v)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, object any) { handle(object, false) },
	}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(ctx) }) // returns when ctx ends
	w.stop = func() { cancel(); wg.Wait() }
	return w
}
