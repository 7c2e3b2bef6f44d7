package examples

import (
	"bufio"
	"context"
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// startWithOnePod starts a server with a pod named a and returns its URL.
func startWithOnePod(t *testing.T) string {
	t.Helper()
	s := testapi.Start(t)
	if _, err := s.Collection("pods").CreateIn(t.Context(), "default",
		[]byte(`{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// runExample runs an example until it has reported want, and waits until the example returns.
func runExample(t *testing.T, example func(context.Context) error, reports <-chan string, want string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- example(ctx) }()
	select {
	case got := <-reports:
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case err := <-ended:
		t.Fatalf("the example has returned %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFollowPodsPrintsAPod(t *testing.T) {
	url := startWithOnePod(t)
	r, w := io.Pipe()
	lines := make(chan string, 1)
	go func() { // returns when the example has printed a line
		line, _ := bufio.NewReader(r).ReadString('\n') // an incomplete line is wrong, too
		lines <- line
	}()
	runExample(t, func(ctx context.Context) error { return FollowPods(ctx, url, w) }, lines, "a\n")
}

// podsAreControlled is true after the first run of TestControlPodsReconcilesAPod.
var podsAreControlled bool

func TestControlPodsReconcilesAPod(t *testing.T) {
	if podsAreControlled {
		t.Skip("controller-runtime allows a controller's name only once in a process")
	}
	podsAreControlled = true
	url := startWithOnePod(t)
	called := make(chan string, 1)
	reconcile := func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
		called <- r.String()
		return ctrl.Result{}, nil
	}
	runExample(t, func(ctx context.Context) error { return ControlPods(ctx, url, reconcile) }, called, "default/a")
}
