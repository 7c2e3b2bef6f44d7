package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// namespace is where all the pods are.
const namespace = "faults"

// A writer changes pods of a collection all the time: it updates them, deletes them and creates them anew.
type writer struct {
	// Immutable after construction.
	pods  *store.Collection
	count int

	mu sync.Mutex
	// Guarded by mu.
	random   *rand.Rand
	gone     map[int]bool
	versions []uint64 // of all changes, in order
}

// newWriter returns a writer to count pods, which it creates.
func newWriter(t *testing.T, pods *store.Collection, count int) *writer {
	t.Helper()
	w := &writer{pods: pods, count: count, random: rand.New(rand.NewPCG(1, 2)), gone: map[int]bool{}}
	for i := range count {
		if _, err := pods.Create(t.Context(), pod(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func podName(i int) string { return fmt.Sprintf("pod-%05d", i) }

// pod is as large as a small pod is.
func pod(i, round int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q,"labels":{"app":"web","shard":"%d"},"annotations":{"round":"%d"}},
		"spec":{"nodeName":"node-%d","serviceAccountName":"default","containers":[{"name":"web","image":"registry.example.com/web:1.%d",
			"env":[{"name":"ROUND","value":"%d"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]},
		"status":{"phase":"Running","podIP":"10.0.%d.%d","conditions":[{"type":"Ready","status":"True"}]}}`,
		podName(i), namespace, i%100, round, i%500, round, round, i/256%256, i%256)
}

// start makes w write 200 times a second until the test ends or stop is called, which waits for the last write.
func (w *writer) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the writer: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (w *writer) run(ctx context.Context) error {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
			if err := w.writeAny(); err != nil {
				return err
			}
		}
	}
}

// writeAny writes a pod or, one time in ten, deletes it.
func (w *writer) writeAny() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.random.IntN(w.count)
	if w.random.IntN(10) == 0 {
		return w.delete(i)
	}
	return w.write(i)
}

// churn deletes the pods from first to the one before last, and creates half of them anew.
func (w *writer) churn(first, last int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := first; i < last; i++ {
		if err := w.delete(i); err != nil {
			return err
		}
		if i%2 == 0 {
			if err := w.write(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// write updates pod i, or creates it where it is gone. It needs mu, as delete does.
func (w *writer) write(i int) error {
	data := pod(i, len(w.versions)+1)
	if w.gone[i] {
		return w.done(i, false)(w.pods.Create(context.Background(), data))
	}
	return w.done(i, false)(w.pods.Replace(context.Background(), keyOf(i), data))
}

func (w *writer) delete(i int) error {
	if w.gone[i] {
		return nil
	}
	return w.done(i, true)(w.pods.Delete(context.Background(), keyOf(i), store.Preconditions{}))
}

// done notes what a write has made of pod i. It needs mu.
func (w *writer) done(i int, gone bool) func(*listwatch.Object, error) error {
	return func(o *listwatch.Object, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", podName(i), err)
		}
		w.gone[i] = gone
		w.versions = append(w.versions, uint64(o.Version))
		return nil
	}
}

func keyOf(i int) listwatch.Key { return listwatch.Key{Namespace: namespace, Name: podName(i)} }

// newest returns the version of the last change.
func (w *writer) newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[len(w.versions)-1]
}

// between returns the versions of the changes after the first version and up to the last.
func (w *writer) between(first, last uint64) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, _ := slices.BinarySearch(w.versions, first+1)
	to, _ := slices.BinarySearch(w.versions, last+1)
	return slices.Clone(w.versions[from:to])
}
