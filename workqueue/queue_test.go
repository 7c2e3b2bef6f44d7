package workqueue

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestNoTwoWorkersHaveTheSameKey(t *testing.T) {
	const keys, adds, workers = 3, 5000, 8
	var q Queue[int]
	var all sync.WaitGroup
	var busy [keys]atomic.Bool
	// added holds the number of adds of each key. seen holds the value of added at the time when a
	// worker last had the key.
	var seen, added [keys]atomic.Int64
	for range workers {
		all.Go(func() {
			for {
				key, err := q.Get(t.Context())
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					return
				}
				if busy[key].Swap(true) {
					t.Errorf("two workers have key %d", key)
				}
				seen[key].Store(added[key].Load())
				busy[key].Store(false)
				q.Done(key)
			}
		})
	}
	for range adds {
		key := rand.IntN(keys)
		added[key].Add(1)
		q.Add(key)
	}
	q.ShutDown()
	all.Wait()
	for key := range keys {
		if seen, added := seen[key].Load(), added[key].Load(); seen != added {
			t.Errorf("key %d was added %d times, but the last worker that had it saw %d", key, added, seen)
		}
	}
}

func TestCanceledGetWakesAnother(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var q Queue[string]
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = q.Get(ctx) }()
			synctest.Wait()
			got := make(chan string, 1)
			go func() {
				key, err := q.Get(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- key
			}()
			synctest.Wait()
			// The queue wakes the first Get for the key, but the context of that Get has ended.
			cancel()
			q.Add("a")
			select {
			case <-got:
			case <-time.After(time.Minute):
				t.Error("no call of Get returned the key")
				q.ShutDown()
				<-got
			}
		})
	}
}

func TestShutDownWakesEveryGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[string]
		q.AddAfter("late", time.Second)
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := q.Get(t.Context())
				errs <- err
			}()
		}
		synctest.Wait()
		q.ShutDown()
		for range 3 {
			if err := <-errs; err != io.EOF {
				t.Errorf("Get returned %v, want io.EOF", err)
			}
		}
		time.Sleep(time.Minute)
		if n := q.Len(); n != 0 {
			t.Errorf("a queue that is shut down holds %d keys, want none", n)
		}
	})
}

func TestDelaysDoubleUpToMaximum(t *testing.T) {
	const most = 1000 * time.Second
	for _, tt := range []struct {
		name  string
		queue *Queue[string]
		// want holds the first delays. All later delays are equal to the last of them.
		want []time.Duration
	}{
		{"default", &Queue[string]{}, []time.Duration{
			5e6, 10e6, 20e6, 40e6, 80e6, 160e6, 320e6, 640e6, 1280e6, 2560e6, 5120e6, 10240e6, 20480e6, 40960e6,
			81920e6, 163840e6, 327680e6, 655360e6, most,
		}},
		{"no delay", &Queue[string]{MinDelay: -1}, []time.Duration{0}},
		{"constant", &Queue[string]{MinDelay: time.Second, MaxDelay: -1}, []time.Duration{time.Second}},
		{
			"greatest duration", &Queue[string]{MinDelay: 1 << 61, MaxDelay: 1<<63 - 1},
			[]time.Duration{1 << 61, 1 << 62, 1<<63 - 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for n := range 100 {
				want := tt.want[min(n, len(tt.want)-1)]
				if got := tt.queue.failureDelay(n); got != want {
					t.Errorf("the delay after %d failures is %v, want %v", n, got, want)
				}
			}
		})
	}
}

func TestRateLimitsRetriesOfAllKeys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		queue *Queue[int]
		burst int           // the number of keys without a delay
		every time.Duration // the difference between the delays of later keys
	}{
		{"default", &Queue[int]{MinDelay: -1}, 100, 100 * time.Millisecond},
		{"custom", &Queue[int]{MinDelay: -1, Rate: 0.5, Burst: 3}, 3, 2 * time.Second},
		{"no burst", &Queue[int]{MinDelay: -1, Rate: 1, Burst: -1}, 1, time.Second},
		{"unlimited", &Queue[int]{MinDelay: -1, Rate: -1}, 1000, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer tt.queue.ShutDown()
				for round := range 2 {
					for n := range 2*tt.burst + 5 {
						want := max(time.Duration(n-tt.burst+1)*tt.every, 0)
						if got := tt.queue.AddRateLimited(round*10000+n, 0); got != want {
							t.Fatalf("round %d, key %d: the delay is %v, want %v", round, n, got, want)
						}
					}
					time.Sleep(time.Hour) // fills the bucket, but not beyond the burst
				}
			})
		})
	}
}

// A key that fails again before its retry must not use up the rate of the other keys and of itself.
func TestDelayedKeyTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queue[string]{MinDelay: -1, Rate: 5, Burst: 1}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		go func() { // ends with ctx
			for ctx.Err() == nil {
				q.AddRateLimited("x", 0)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		gets := 0
		for {
			key, err := q.Get(ctx)
			if err != nil {
				break
			}
			q.Forget(key)
			q.Done(key)
			gets++
		}
		q.ShutDown()
		time.Sleep(time.Second)
		if gets < 500 || gets > 601 {
			t.Errorf("got the key %d times in two minutes, want 5 times a second", gets)
		}
	})
}

func TestRateDelaysNoKeyBeyondMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[int]
		defer q.ShutDown()
		var longest time.Duration
		for key := range 50_000 {
			longest = max(longest, q.AddRateLimited(key, 0))
		}
		if longest != 1000*time.Second {
			t.Errorf("the longest delay is %v, want 1000 s", longest)
		}
		if d := q.AddRateLimited(-1, time.Hour); d != time.Hour {
			t.Errorf("the delay is %v, want the requested hour", d)
		}
	})
}

func TestKeysAreHandedOutInOrder(t *testing.T) {
	var q Queue[int]
	var want []int
	for n := range 1000 {
		q.Add(n)
		want = append(want, n)
	}
	var got []int
	for q.Len() > 0 {
		key, err := q.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want the keys in the order in which they were added", got)
	}
}

func TestStatsCountKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[string]
		q.Add("a")
		q.Add("a")
		time.Sleep(time.Second)
		q.Add("b")
		q.AddRateLimited("c", time.Minute)
		if got, want := q.Stats(),
			(Stats{Queued: 2, Delayed: 1, Waiting: time.Second, Added: 2, Retried: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if key, err := q.Get(t.Context()); key != "a" || err != nil {
			t.Fatal(key, err)
		}
		q.Add("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := q.Stats(),
			(Stats{Queued: 2, InProgress: 1, Waiting: time.Minute, Added: 4, Retried: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}
