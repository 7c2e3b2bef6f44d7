package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

func newRequest(data string) *request {
	c := store.Change{Key: listwatch.Key{Name: "a"}, New: &store.Draft{Before: []byte(data)}}
	return &request{change: c, done: make(chan struct{})}
}

func TestGatherWaitsForRequestsOrTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				q.add(newRequest(""))
			}
		}()
		start := time.Now()
		q.gather(2, time.Minute)
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("gather returned after %v, want 2s", got)
		}
		q.gather(9, 500*time.Millisecond)
		if got := time.Since(start); got != 2500*time.Millisecond {
			t.Errorf("gather returned after %v, want 2.5s", got)
		}
		time.AfterFunc(10*time.Second, q.close)
		q.gather(9, time.Minute)
		if got := time.Since(start); got != 12500*time.Millisecond {
			t.Errorf("gather returned after %v, want 12.5s, when the queue closed", got)
		}
		if batch, more := q.take(); len(batch) != 3 || !more {
			t.Errorf("got %d requests, %v; want all 3", len(batch), more)
		}
		if batch, more := q.take(); len(batch) != 0 || more {
			t.Errorf("got %d requests, %v; want none, and false", len(batch), more)
		}
	})
}

// gather may receive a signal that is meant for other work of the committer, and must pass
// it on.
func TestGatherKeepsSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.wake()
		q.gather(1, time.Second)
		if batch, more := q.take(); len(batch) != 0 || !more {
			t.Errorf("got %d requests, %v; want an empty batch, and true", len(batch), more)
		}
	})
}

func TestBatchesAreLimited(t *testing.T) {
	q := newQueue()
	half := string(make([]byte, maxBatchBytes/2))
	for _, data := range []string{half, half, half, half + half + half, ""} {
		q.add(newRequest(data))
	}
	for i, want := range []int{2, 2, 1} {
		if batch, _ := q.take(); len(batch) != want {
			t.Errorf("batch %d has %d requests, want %d", i, len(batch), want)
		}
	}
	for range maxBatchRequests + 1 {
		q.add(newRequest(""))
	}
	if batch, _ := q.take(); len(batch) != maxBatchRequests {
		t.Errorf("got %d requests, want %d", len(batch), maxBatchRequests)
	}
}
