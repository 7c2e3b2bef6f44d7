package servecmd

import (
	"context"
	"log/slog"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestDemoMakesEveryKindOfChange(t *testing.T) {
	s := &server{
		Listeners: listen.Listeners{Log: slog.New(slog.DiscardHandler), Metrics: metrics.New()},
		db:        memoryDatabase{memory.Open(memory.Options{})}, api: &kubeapi.Handler{},
	}
	if err := s.addResources(t.Context(), &serveOptions{}); err != nil {
		t.Fatal(err)
	}
	labels, err := listwatch.ParseLabelSelector("color=blue")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := s.collection("po").Watch(ctx, listwatch.Query{Selection: listwatch.Selection{Labels: labels}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const rounds = 2 * demoPods
	for i := range 5 * rounds {
		if err := s.demoStep(ctx, i); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	seen := map[listwatch.EventType]int{}
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[e.Type]++; e.Type == listwatch.Deleted && e.Object.Key.Name == demoPodName(rounds-1) {
			break
		}
	}
	// A pod that changes from blue to green no longer matches the selector, so the watcher
	// receives DELETED.
	if seen[listwatch.Added] != rounds || seen[listwatch.Modified] != rounds || seen[listwatch.Deleted] != rounds {
		t.Errorf("got %v, want %d events of each type", seen, rounds)
	}
	page, err := s.collection("pods").List(ctx, listwatch.Query{})
	if err != nil || len(page.Items) != demoPods {
		t.Errorf("got %d pods, %v, want %d", len(page.Items), err, demoPods)
	}
}

// endlessLoad is a database whose collections never finish loading.
type endlessLoad struct {
	memoryDatabase
	started func()
}

func (e endlessLoad) CollectionContext(ctx context.Context, _ store.CollectionSpec) (*store.Collection, error) {
	e.started()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSignalInterruptsLoading(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	s := &server{db: endlessLoad{memoryDatabase{memory.Open(memory.Options{})}, signal}, api: &kubeapi.Handler{}}
	if err := startError(ctx, s.addResources(ctx, &serveOptions{})); err == nil ||
		err.Error() != "interrupted before the server was ready" {
		t.Errorf("got %v, want the error for an interrupt", err)
	}
}
