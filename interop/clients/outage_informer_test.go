package clients

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A podInformer is an informer of all pods. The test checks its requests and notifications.
type podInformer struct {
	name      string
	protocol  testapi.Protocol
	watchList bool
	requests  *requestCounter
	events    *eventChecker
	client    kubernetes.Interface
	informer  cache.SharedIndexInformer
}

// startPodInformer runs an informer until the test ends, and returns when it has synced.
func startPodInformer(t *testing.T, s *testapi.Server, p testapi.Protocol, watchList bool) *podInformer {
	t.Helper()
	f := &podInformer{
		name: fmt.Sprintf("%s, WatchList %v", p, watchList), protocol: p, watchList: watchList,
		requests: &requestCounter{protos: map[string]int{}}, events: newEventChecker(),
	}
	config := s.Config(p)
	config.ContentType = runtime.ContentTypeJSON // the counter reads the events
	// Because of the wrapper, client-go creates a separate transport for this client.
	// Otherwise all clients with the same config would share one.
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		f.requests.RoundTripper = rt
		return f.requests
	})
	var err error
	if f.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	client := f.client
	if !watchList {
		client = withoutWatchList{client}
	}
	f.informer = informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	registration, err := f.informer.AddEventHandler(f.events)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	f.run(t)
	select {
	case <-registration.HasSyncedChecker().Done():
	case <-time.After(waitTimeout):
		t.Fatalf("%s: did not sync after %+v", f.name, f.requests.snapshot())
	}
	t.Logf("%s: %d objects after %v", f.name, len(f.informer.GetStore().ListKeys()),
		time.Since(start).Round(time.Millisecond))
	want := requestCounts{lists: 1}
	if watchList {
		want = requestCounts{streamed: 1}
	}
	// Do not compare the number of resumed watches: the watch after a list may not be open yet.
	if got := f.requests.snapshot(); got.lists != want.lists || got.streamed != want.streamed {
		t.Errorf("%s: synced with %+v, want %+v", f.name, got, want)
	}
	return f
}

// withoutWatchList makes informers list and watch instead of requesting a streaming list.
type withoutWatchList struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported is called by client-go's reflectors.
func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// run runs the informer until the test ends.
func (p *podInformer) run(t *testing.T) {
	t.Helper()
	var ended sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	ended.Go(func() { p.informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

// waitForVersion waits until the handler has seen the given version or a newer one.
func (p *podInformer) waitForVersion(t *testing.T, version uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: version %d", p.name, version), func(context.Context) (bool, error) {
		return p.events.reached(version), nil
	})
}

// check checks the store and the notifications. The writer must have stopped, and the given version
// must be the version of the last write.
func (p *podInformer) check(t *testing.T, version uint64) {
	t.Helper()
	p.waitForVersion(t, version)
	p.checkStore(t)
	for _, violation := range p.events.allViolations() {
		t.Errorf("%s: %s", p.name, violation)
	}
	want := map[testapi.Protocol]string{testapi.HTTP1: "HTTP/1.1", testapi.HTTP2: "HTTP/2.0"}[p.protocol]
	if got := p.requests.protocols(); len(got) != 1 || got[want] == 0 {
		t.Errorf("%s: got responses over %v, want %s only", p.name, got, want)
	}
}

// checkStore compares the informer's store with a fresh list. There must be no concurrent writes.
func (p *podInformer) checkStore(t *testing.T) {
	t.Helper()
	list, err := p.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := p.informer.GetStore()
	if got, want := len(stored.ListKeys()), len(list.Items); got != want {
		t.Errorf("%s: the store has %d objects, want %d", p.name, got, want)
	}
	different := 0
	for i := range list.Items {
		if !storeHas(stored, &list.Items[i]) {
			different++
			if different == 1 {
				got, _, _ := stored.GetByKey(outageNamespace + "/" + list.Items[i].Name)
				t.Errorf("%s: an object differs (-server +store):\n%s", p.name, cmp.Diff(any(&list.Items[i]), got))
			}
		}
	}
	if different > 0 {
		t.Errorf("%s: %d objects differ", p.name, different)
	}
}

// storeHas reports whether a store contains the wanted pod. It ignores kind and apiVersion, which
// client-go removes from the objects of watches.
func storeHas(stored cache.Store, want *v1.Pod) bool {
	obj, ok, err := stored.GetByKey(outageNamespace + "/" + want.Name)
	if !ok || err != nil {
		return false
	}
	got := *obj.(*v1.Pod)
	got.TypeMeta = want.TypeMeta
	return got.UID != "" && equality.Semantic.DeepEqual(&got, want)
}
