package examples

import (
	"bufio"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
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
	s := kubetest.Start(t)
	if _, err := s.Collection("pods").CreateIn(t.Context(), "default", []byte(`{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// runExample runs an example until check returns, and waits until the example returns.
func runExample(t *testing.T, example func(context.Context) error, check func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- example(ctx) }()
	check()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFollowPodsPrintsAPod(t *testing.T) {
	url := startWithOnePod(t)
	r, w := io.Pipe()
	runExample(t, func(ctx context.Context) error { return FollowPods(ctx, url, w) }, func() {
		if line, err := bufio.NewReader(r).ReadString('\n'); line != "a\n" {
			t.Errorf("got %q, %v, want the name of the pod", line, err)
		}
	})
}

func TestControlPodsReconcilesAPod(t *testing.T) {
	url := startWithOnePod(t)
	called := make(chan string, 1)
	reconcile := func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
		called <- r.String()
		return ctrl.Result{}, nil
	}
	runExample(t, func(ctx context.Context) error { return ControlPods(ctx, url, reconcile) }, func() {
		if got := <-called; got != "default/a" {
			t.Errorf("got %q, want the pod", got)
		}
	})
}

func TestDocsShowTheExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- (interop/examples/\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/kubernetes.md shows %d examples, want two", len(blocks))
	}
	for _, block := range blocks {
		source, err := os.ReadFile("../../" + block[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, code, _ := strings.Cut(string(source), "\n)\n\n"); code != block[2] {
			t.Errorf("docs/kubernetes.md shows an outdated %s:\n%s", block[1], block[2])
		}
	}
}
