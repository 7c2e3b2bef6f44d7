package batchread_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Every caller must get a value that was read after its call. For a thousand concurrent
// callers two reads are sufficient.
func TestConcurrentCallersShareTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var newest, reads atomic.Int64
		r := &batchread.Reader[int64]{Read: func() (int64, error) {
			reads.Add(1)
			v := newest.Load() // the value at the start of the read
			time.Sleep(time.Second)
			return v, nil
		}}
		var wg sync.WaitGroup
		get := func() {
			wg.Go(func() {
				known := newest.Load()
				got, err := r.Get(t.Context())
				if err != nil || got < known {
					t.Errorf("got %d, %v, want %d or newer", got, err, known)
				}
			})
		}
		get()
		synctest.Wait()
		newest.Store(7) // while the first read is in progress
		for range 1000 {
			get()
		}
		wg.Wait()
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads, want 2", n)
		}
	})
}

func TestReadContinuesAfterACallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		r := &batchread.Reader[int]{
			Read: func() (int, error) {
				time.Sleep(time.Second)
				return 5, nil
			},
			Start: func(f func()) error { wg.Go(f); return nil },
		}
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if got, err := r.Get(ctx); got != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("canceled caller: got %d, %v, want 0 and context.Canceled", got, err)
			}
		})
		wg.Go(func() {
			if got, err := r.Get(t.Context()); got != 5 || err != nil {
				t.Errorf("remaining caller: got %d, %v, want 5", got, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

func TestFailedReadFailsOnlyItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		reads := 0
		r := &batchread.Reader[int]{Read: func() (int, error) {
			time.Sleep(time.Second)
			if reads++; reads == 1 {
				return 0, down
			}
			return reads, nil
		}}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Get(t.Context()); err != down {
				t.Errorf("first batch: got %v, want %v", err, down)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if got, err := r.Get(t.Context()); got != 2 || err != nil {
					t.Errorf("second batch: got %d, %v, want 2", got, err)
				}
			})
		}
		wg.Wait()
		if got, err := r.Get(t.Context()); got != 3 || err != nil {
			t.Errorf("after an idle time: got %d, %v, want 3", got, err)
		}
	})
}

func TestGetReturnsTheErrorOfStart(t *testing.T) {
	closed := errors.New("closed")
	var wg sync.WaitGroup
	r := &batchread.Reader[int]{
		Read:  func() (int, error) { return 1, nil },
		Start: func(func()) error { return closed },
	}
	for range 2 {
		if got, err := r.Get(t.Context()); got != 0 || err != closed {
			t.Errorf("got %d, %v, want 0 and %v", got, err, closed)
		}
	}
	r.Start = func(f func()) error { wg.Go(f); return nil }
	if got, err := r.Get(t.Context()); got != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", got, err)
	}
	wg.Wait()
}
