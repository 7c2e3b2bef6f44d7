package controllerruntime

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// newClient returns a client that reads from the server and not from a cache.
func newClient(t *testing.T, s *kubetest.Server) client.Client {
	t.Helper()
	return must(client.New(s.Config(kubetest.HTTP2), client.Options{Scheme: newScheme()}))(t)
}

// startCache starts a cache that ends with the test. Before, prepare may add to it.
func startCache(t *testing.T, s *kubetest.Server, o cache.Options, prepare func(cache.Cache)) cache.Cache {
	t.Helper()
	o.Scheme = newScheme()
	c := must(cache.New(s.Config(kubetest.HTTP2), o))(t)
	if prepare != nil {
		prepare(c)
	}
	start(t, c.Start)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has no state")
	}
	return c
}

// start runs something in the background that ends when its context does; the test waits for it. stop makes it end before.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a clean end", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until done. Only a test that fails waits for minutes.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, 2*time.Minute, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// must returns v to the test, which an error fails.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// create creates objects.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
