package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A flakyStore fails all requests while it is down.
type flakyStore struct {
	listwatch.Store
	down atomic.Bool
}

func (f *flakyStore) err() error {
	if f.down.Load() {
		return &listwatch.Error{Code: listwatch.Unavailable, Message: "down"}
	}
	return nil
}

func (f *flakyStore) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.Store.Get(ctx, key)
}

func (f *flakyStore) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.Store.Replace(ctx, key, data)
}

// A forgetfulStore performs all writes. While it is down, it reports that they failed.
type forgetfulStore struct {
	listwatch.Store
	down atomic.Bool
}

func (f *forgetfulStore) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	o, err := f.Store.Replace(ctx, key, data)
	if f.down.Load() {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Message: "the response was lost"}
	}
	return o, err
}

func newLeases(t *testing.T) *store.Collection {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespaced: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var leaseKey = listwatch.Key{Namespace: "n", Name: "scaler"}

func TestNextCandidateLeadsAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := newLeases(t)
		first, leave := context.WithCancel(t.Context())
		done := make(chan error, 2)
		start := time.Now()
		var ledAt time.Duration
		lead := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		go func() { done <- controller.Election{Leases: leases, Key: leaseKey, Identity: "a"}.Run(first, lead) }()
		synctest.Wait()
		var seen []string
		second, stop := context.WithCancel(t.Context())
		go func() {
			e := controller.Election{
				Leases: leases, Key: leaseKey, Identity: "b",
				NewLeader: func(id string) { seen = append(seen, id) },
			}
			done <- e.Run(second, func(ctx context.Context) error { ledAt = time.Since(start); return lead(ctx) })
		}()
		time.Sleep(time.Hour)
		if ledAt != 0 {
			t.Fatalf("the second candidate leads after %v although the first one renews", ledAt)
		}
		leave()
		time.Sleep(controller.DefaultLeaseDuration / 6)
		synctest.Wait()
		if ledAt == 0 {
			t.Error("the second candidate does not lead after the release")
		}
		stop()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if fmt.Sprint(seen) != "[a b]" {
			t.Errorf("got the leaders %v, want a and b", seen)
		}
	})
}

// A leader that cannot reach the store stops before another candidate takes over.
func TestLeaderStopsWhenLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := newLeases(t)
		flaky := &flakyStore{Store: leases}
		start := time.Now()
		var ended, began time.Duration
		own := errors.New("own")
		lost := make(chan error, 1)
		go func() {
			lost <- controller.Election{Leases: flaky, Key: leaseKey, Identity: "a"}.Run(t.Context(),
				func(ctx context.Context) error {
					<-ctx.Done()
					ended = time.Since(start)
					return own
				})
		}()
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		other := make(chan error, 1)
		go func() {
			other <- controller.Election{Leases: leases, Key: leaseKey, Identity: "b"}.Run(ctx,
				func(context.Context) error {
					began = time.Since(start)
					return nil
				})
		}()
		time.Sleep(time.Minute)
		flaky.down.Store(true)
		if err := <-lost; !errors.Is(err, listwatch.Unavailable) || !errors.Is(err, own) {
			t.Errorf("got %v, want Unavailable with the error of lead", err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
		if ended < time.Minute || began <= ended || began > time.Minute+2*controller.DefaultLeaseDuration {
			t.Errorf("the first leader ended after %v, and the next began after %v", ended, began)
		}
		stop()
	})
}

// If a store performs the writes of the leader but its responses are lost, the leader must keep its
// term. No other candidate could take over, because the lease is renewed.
func TestLeaderRecognizesItsOwnRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetfulStore{Store: newLeases(t)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- controller.Election{Leases: s, Key: leaseKey, Identity: "a"}.Run(ctx,
				func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
		}()
		time.Sleep(time.Second)
		s.down.Store(true)
		time.Sleep(time.Hour)
		select {
		case err := <-done:
			t.Errorf("the leader ended: %v", err)
		default:
		}
		stop()
		synctest.Wait()
	})
}

// Candidates that come, go and lose the store at random never lead at the same time.
func TestAtMostOneCandidateLeads(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		leases := newLeases(t)
		ctx, stop := context.WithCancel(t.Context())
		var leaders, terms atomic.Int32
		var all sync.WaitGroup
		lead := func(stay time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				terms.Add(1)
				if n := leaders.Add(1); n != 1 {
					t.Errorf("%d candidates lead", n)
				}
				defer leaders.Add(-1)
				select {
				case <-ctx.Done():
				case <-time.After(stay):
				}
				return nil
			}
		}
		stores := make([]*flakyStore, 3)
		for i := range stores {
			stores[i] = &flakyStore{Store: leases}
			stay := time.Duration(random.IntN(200)+1) * time.Second
			all.Go(func() {
				for ctx.Err() == nil {
					_ = controller.Election{Leases: stores[i], Key: leaseKey, Identity: fmt.Sprint(i)}.Run(ctx,
						lead(stay))
				}
			})
		}
		for range 500 {
			stores[random.IntN(len(stores))].down.Store(random.IntN(3) == 0)
			time.Sleep(time.Duration(random.IntN(20000)) * time.Millisecond)
		}
		stop()
		all.Wait()
		if terms.Load() < 10 {
			t.Errorf("got %d terms, want at least 10", terms.Load())
		}
	})
}
