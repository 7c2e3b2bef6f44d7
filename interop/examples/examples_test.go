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

// onePod is a server with a pod named a.
func onePod(t *testing.T) string {
	t.Helper()
	s := kubetest.Start(t)
	if _, err := s.Collection("pods").CreateIn(t.Context(), "default", []byte(`{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// run runs an example until the test has seen what it wants, and waits for its end.
func run(t *testing.T, example func(context.Context) error, seen func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- example(ctx) }()
	seen()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheInformerSeesAPod(t *testing.T) {
	url := onePod(t)
	r, w := io.Pipe()
	run(t, func(ctx context.Context) error { return FollowPods(ctx, url, w) }, func() {
		if line, err := bufio.NewReader(r).ReadString('\n'); line != "a\n" {
			t.Errorf("got %q, %v, want the name of the pod", line, err)
		}
	})
}

func TestTheControllerIsCalledForAPod(t *testing.T) {
	url := onePod(t)
	called := make(chan string, 1)
	reconcile := func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
		called <- r.String()
		return ctrl.Result{}, nil
	}
	run(t, func(ctx context.Context) error { return ControlPods(ctx, url, reconcile) }, func() {
		if got := <-called; got != "default/a" {
			t.Errorf("got %q, want the pod", got)
		}
	})
}

func TestTheDocumentShowsTheExamples(t *testing.T) {
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
			t.Errorf("docs/kubernetes.md shows another %s than there is:\n%s", block[1], block[2])
		}
	}
}
