package clients

import (
	"context"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newControllerClient returns a client that reads from the server, not from a cache.
func newControllerClient(t *testing.T, s *testapi.Server) client.Client {
	t.Helper()
	return testkit.Must(client.New(s.Config(testapi.HTTP2), client.Options{Scheme: newScheme()}))(t)
}

// startCache runs a cache until the test ends. If prepare is not nil, startCache calls it
// before the start.
func startCache(t *testing.T, s *testapi.Server, o cache.Options, prepare func(cache.Cache)) cache.Cache {
	t.Helper()
	o.Scheme = newScheme()
	c := testkit.Must(cache.New(s.Config(testapi.HTTP2), o))(t)
	if prepare != nil {
		prepare(c)
	}
	startInBackground(t, c.Start)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
	return c
}

// startInBackground calls run in a goroutine. stop cancels the context of run and waits until run
// returns. At the end of the test, stop is called automatically.
func startInBackground(t *testing.T, run func(context.Context) error) (stop func()) {
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
			t.Errorf("got error %v at the end, want nil", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func createObjects(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
