package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A follower is an informer of all pods, and what watches over it.
type follower struct {
	name      string
	protocol  kubetest.Protocol
	watchList bool
	sessions  *sessions
	handler   *handler
	client    kubernetes.Interface
	informer  cache.SharedIndexInformer
}

// follow starts an informer that ends with the test, and returns when it has the state.
func follow(t *testing.T, s *kubetest.Server, p kubetest.Protocol, watchList bool) *follower {
	t.Helper()
	f := &follower{
		name: fmt.Sprintf("%s, WatchList %v", p, watchList), protocol: p, watchList: watchList,
		sessions: &sessions{protos: map[string]int{}}, handler: newHandler(),
	}
	config := s.Config(p)
	// A transport of its own: otherwise client-go shares one between all clients of one config.
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		f.sessions.RoundTripper = rt
		return f.sessions
	})
	var err error
	if f.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	f.informer = informers.NewSharedInformerFactory(f.client, 0).Core().V1().Pods().Informer()
	registration, err := f.informer.AddEventHandler(f.handler)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	f.run(t)
	select {
	case <-registration.HasSyncedChecker().Done():
	case <-time.After(patience):
		t.Fatalf("%s: still no state, sessions: %+v", f.name, f.sessions.now())
	}
	t.Logf("%s: %d objects after %v", f.name, len(f.informer.GetStore().ListKeys()), time.Since(start).Round(time.Millisecond))
	want := counts{lists: 1}
	if watchList {
		want = counts{streamed: 1}
	}
	// Without WatchList the watch opens after the list.
	if got := f.sessions.now(); got.lists != want.lists || got.streamed != want.streamed {
		t.Errorf("%s: got the state by %+v, want %+v", f.name, got, want)
	}
	return f
}

// gate guards the features of client-go, which are the same for all clients of a process.
var gate sync.Mutex

// run runs the informer with or without WatchList. It returns when the informer has read the feature: when it asks the server.
func (f *follower) run(t *testing.T) {
	t.Helper()
	gate.Lock()
	defer gate.Unlock()
	features := features.FeatureGates().(interface {
		Set(features.Feature, bool) error
	})
	if err := features.Set("WatchListClient", f.watchList); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	ended.Go(func() { f.informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	eventually(t, f.name+": asks the server", func() bool { return f.sessions.now().relists() > 0 })
	if err := features.Set("WatchListClient", true); err != nil {
		t.Fatal(err)
	}
}

// patience is how long a test waits for what must come. Only a test that fails waits so long.
const patience = 5 * time.Minute

// eventually waits until done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	check := func(context.Context) (bool, error) { return done(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, patience, true, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// sees waits until the handler was told of version, or of a newer one.
func (f *follower) sees(t *testing.T, version uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: sees version %d", f.name, version), func() bool { return f.handler.reached(version) })
}

// checkEnd checks all that f has learned, when the writer has stopped at version.
func (f *follower) checkEnd(t *testing.T, version uint64) {
	t.Helper()
	f.sees(t, version)
	f.checkStore(t)
	for _, wrong := range f.handler.complaints() {
		t.Errorf("%s: %s", f.name, wrong)
	}
	want := map[kubetest.Protocol]string{kubetest.HTTP1: "HTTP/1.1", kubetest.HTTP2: "HTTP/2.0"}[f.protocol]
	if got := f.sessions.protocols(); len(got) != 1 || got[want] == 0 {
		t.Errorf("%s: the answers came by %v", f.name, got)
	}
}

// checkStore holds the informer's store against a fresh list, while nobody writes.
func (f *follower) checkStore(t *testing.T) {
	t.Helper()
	list, err := f.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := f.informer.GetStore()
	if got, want := len(stored.ListKeys()), len(list.Items); got != want {
		t.Errorf("%s: the informer has %d objects, the server %d", f.name, got, want)
	}
	different := 0
	for i := range list.Items {
		if !same(stored, &list.Items[i]) {
			different++
			if different == 1 {
				got, _, _ := stored.GetByKey(namespace + "/" + list.Items[i].Name)
				t.Errorf("%s: want what the server has, got (-want +got):\n%s", f.name, cmp.Diff(any(&list.Items[i]), got))
			}
		}
	}
	if different > 0 {
		t.Errorf("%s: %d objects differ", f.name, different)
	}
}

// same reports whether stored has want. Kind and apiVersion don't count: client-go drops them from the objects of watches.
func same(stored cache.Store, want *v1.Pod) bool {
	obj, ok, err := stored.GetByKey(namespace + "/" + want.Name)
	if !ok || err != nil {
		return false
	}
	got := *obj.(*v1.Pod)
	got.TypeMeta = want.TypeMeta
	return got.UID != "" && equality.Semantic.DeepEqual(&got, want)
}
