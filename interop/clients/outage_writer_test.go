package clients

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

// outageNamespace is the namespace of all pods.
const outageNamespace = "faults"

// A podWriter updates, deletes and creates the pods of a collection without a pause.
type podWriter struct {
	// Immutable after construction.
	pods  *store.Collection
	count int

	mu sync.Mutex
	// Guarded by mu.
	random   *rand.Rand
	deleted  map[int]bool
	versions []uint64 // the versions of all writes, in order
}

// newPodWriter creates count pods and returns a writer for them.
func newPodWriter(t *testing.T, pods *store.Collection, count int) *podWriter {
	t.Helper()
	w := &podWriter{pods: pods, count: count, random: rand.New(rand.NewPCG(1, 2)), deleted: map[int]bool{}}
	for i := range count {
		if _, err := pods.Create(t.Context(), podJSON(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func podName(i int) string { return fmt.Sprintf("pod-%05d", i) }

// podJSON returns a pod of a realistic size.
func podJSON(i, round int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q,"labels":{"app":"web","shard":"%d"},"annotations":{"round":"%d"}},
		"spec":{"nodeName":"node-%d","serviceAccountName":"default","containers":[{"name":"web","image":"registry.example.com/web:1.%d",
			"env":[{"name":"ROUND","value":"%d"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]},
		"status":{"phase":"Running","podIP":"10.0.%d.%d","conditions":[{"type":"Ready","status":"True"}]}}`,
		podName(i), outageNamespace, i%100, round, i%500, round, round, i/256%256, i%256)
}

// start writes 200 times per second until the test ends or stop is called. stop waits for
// the last write.
func (w *podWriter) start(t *testing.T) (stop func()) {
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

func (w *podWriter) run(ctx context.Context) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := w.writeAny(); err != nil {
				return err
			}
		}
	}
}

// writeAny writes a random pod. With a probability of one tenth it deletes the pod instead.
func (w *podWriter) writeAny() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.random.IntN(w.count)
	if w.random.IntN(10) == 0 {
		return w.delete(i)
	}
	return w.write(i)
}

// replaceHalf deletes the pods with the numbers in [first, last), and creates every second
// one again.
func (w *podWriter) replaceHalf(first, last int) error {
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

// write updates pod i, or creates it if it was deleted. The caller must hold mu.
func (w *podWriter) write(i int) error {
	data := podJSON(i, len(w.versions)+1)
	if w.deleted[i] {
		return w.record(i, false)(w.pods.Create(context.Background(), data))
	}
	return w.record(i, false)(w.pods.Replace(context.Background(), podKey(i), data))
}

// delete deletes pod i unless it is already deleted. The caller must hold mu.
func (w *podWriter) delete(i int) error {
	if w.deleted[i] {
		return nil
	}
	return w.record(i, true)(w.pods.Delete(context.Background(), podKey(i), listwatch.Preconditions{}))
}

// record returns a function that takes the result of a write of pod i and records the version
// of the write. gone is true if the write is a delete. The caller must hold mu.
func (w *podWriter) record(i int, gone bool) func(*listwatch.Object, error) error {
	return func(o *listwatch.Object, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", podName(i), err)
		}
		w.deleted[i] = gone
		w.versions = append(w.versions, uint64(o.Version))
		return nil
	}
}

func podKey(i int) listwatch.Key { return listwatch.Key{Namespace: outageNamespace, Name: podName(i)} }

// newest returns the version of the last write.
func (w *podWriter) newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[len(w.versions)-1]
}

// between returns the versions of the writes after first, up to and including last.
func (w *podWriter) between(first, last uint64) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, _ := slices.BinarySearch(w.versions, first+1)
	to, _ := slices.BinarySearch(w.versions, last+1)
	return slices.Clone(w.versions[from:to])
}
