package expiry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A bench is a Queue whose owner deletes each key that is due, and a clock that can jump.
type bench struct {
	*Queue[string]
	t      *testing.T
	start  time.Time
	jumped atomic.Int64 // the total length of the pauses, in nanoseconds
	fails  atomic.Bool  // the owner cannot delete

	log     sync.Mutex
	deleted []string // key@time since the start; guarded by log
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, start: time.Now()}
	b.Queue = New(func(due []string) {
		for _, key := range due {
			if !b.Claim(key) {
				continue
			}
			if b.fails.Load() {
				b.Release(key)
				continue
			}
			b.log.Lock()
			b.deleted = append(b.deleted, fmt.Sprintf("%s@%v", key, time.Since(b.start)))
			b.log.Unlock()
			b.Set(key, 0)
		}
	}, func() time.Time { return time.Now().Add(time.Duration(b.jumped.Load())) })
	return b
}

// pause makes the clock jump, as if the process had been stopped for d: all timers are late.
func (b *bench) pause(d time.Duration) { b.jumped.Add(int64(d)) }

func (b *bench) renew(key string) {
	b.t.Helper()
	if err := b.Renew(b.t.Context(), key, func() error { return nil }); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) allDeleted() []string {
	synctest.Wait()
	b.log.Lock()
	defer b.log.Unlock()
	return slices.Clone(b.deleted)
}

func (b *bench) wantDeleted(want ...string) {
	b.t.Helper()
	if got := b.allDeleted(); !slices.Equal(got, want) {
		b.t.Errorf("got %q deleted, want %q", got, want)
	}
}

// inBubble runs test with fake time, in which all calls of a Queue take no time.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newBench(t)) })
}

func TestKeysEndAfterTheirTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", 3*time.Second)
		b.Set("b", 1500*time.Millisecond)
		b.Set("never", 0)
		b.Set("c", time.Hour)
		b.Set("c", 0)
		if b.Len() != 2 {
			t.Errorf("got %d keys, want 2", b.Len())
		}
		time.Sleep(10 * time.Second)
		b.wantDeleted("b@2s", "a@3s")
		if b.Len() != 0 || len(b.entries) != 0 || len(b.checks) != 0 || b.armed {
			t.Errorf("an empty queue has %d entries, %d checks, armed: %t", len(b.entries), len(b.checks), b.armed)
		}
		b.Set("d", time.Second)
		time.Sleep(10 * time.Second)
		b.wantDeleted("b@2s", "a@3s", "d@11s")
	})
}

func TestRenewalsExtendTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", 3*time.Second)
		for range 10 {
			time.Sleep(2 * time.Second)
			b.renew("a")
			b.renew("absent")
		}
		b.wantDeleted()
		time.Sleep(10 * time.Second)
		b.wantDeleted("a@23s")
	})
}

func TestAShorterTTLCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", time.Hour)
		b.Set("a", 3*time.Second)
		b.Restore("b", time.Hour, 2*time.Second)
		time.Sleep(10 * time.Second)
		b.wantDeleted("b@2s", "a@3s")
	})
}

func TestLongestTTLDoesNotOverflow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", math.MaxInt64)
		time.Sleep(10 * time.Second)
		b.renew("a")
		if left := b.Left("a"); left != maxTTL {
			t.Errorf("a has %v left, want %v", left, maxTTL)
		}
		b.Set("a", 0)
	})
}

// The time of a pause does not count, whether a timer or a renewal is the first to notice it.
func TestPausesDoNotCount(t *testing.T) {
	for _, first := range []string{"timer", "renewal", "write"} {
		t.Run(first, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Set("a", 6*time.Second)
				b.Set("b", 3*time.Second)
				time.Sleep(2500 * time.Millisecond) // the last tick was half a second ago
				b.pause(20 * time.Second)
				switch first {
				case "renewal":
					b.renew("a")
				case "write":
					b.Set("a", 6*time.Second)
				}
				time.Sleep(500 * time.Millisecond)
				b.wantDeleted("b@3s")
				time.Sleep(2 * time.Second)
				b.wantDeleted("b@3s")
				time.Sleep(10 * time.Second)
				if got := b.allDeleted(); len(got) != 2 {
					t.Errorf("got %q deleted, want both", got)
				}
			})
		})
	}
}

func TestShortPausesCount(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", 6*time.Second)
		b.pause(time.Second)
		time.Sleep(10 * time.Second)
		b.wantDeleted("a@5s")
	})
}

// A key that its owner cannot delete is tried again each Tick, and a renewal saves it.
func TestFailedDeletesAreRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.fails.Store(true)
		b.Set("a", 2*time.Second)
		b.Set("b", 2*time.Second)
		time.Sleep(5500 * time.Millisecond)
		b.renew("a")
		b.fails.Store(false)
		time.Sleep(10 * time.Second)
		b.wantDeleted("b@6s", "a@8s")
	})
}

// A renewal that arrives while the object is deleted waits for the result.
func TestRenewalWaitsForAClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		isGone := errors.New("gone")
		for _, deleted := range []bool{false, true} {
			b.Set("a", time.Second)
			b.clock += 2 * time.Second
			if !b.Claim("a") || b.Claim("a") {
				t.Fatal("want one claim of a key that is due")
			}
			canceled, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := b.Renew(canceled, "a", func() error { return nil }); err != context.DeadlineExceeded {
				t.Errorf("a renewal that waits ended with %v, want the error of its context", err)
			}
			cancel()
			done := make(chan error)
			var state error
			go func() { done <- b.Renew(t.Context(), "a", func() error { return state }) }()
			synctest.Wait()
			want := error(nil)
			if deleted {
				state, want = isGone, isGone
				b.Set("a", 0)
			} else {
				b.Release("a")
			}
			if err := <-done; err != want {
				t.Errorf("deleted: %t: the renewal returns %v, want %v", deleted, err, want)
			}
			if b.Claim("a") {
				t.Errorf("deleted: %t: a key that is not due was claimed", deleted)
			}
			b.Set("a", 0)
		}
	})
}

func TestStaleRenewalHasNoEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", 2*time.Second)
		time.Sleep(time.Second)
		changed := errors.New("changed")
		if err := b.Renew(t.Context(), "a", func() error { return changed }); err != changed {
			t.Errorf("got %v, want %v", err, changed)
		}
		time.Sleep(10 * time.Second)
		b.wantDeleted("a@2s")
	})
}

func TestStopEndsDeletesAndRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Set("a", 10*time.Second)
		time.Sleep(3 * time.Second)
		closed := errors.New("closed")
		b.Stop(closed)
		b.Stop(errors.New("closed again"))
		if err := b.Renew(t.Context(), "a", func() error { return nil }); err != closed {
			t.Errorf("a renewal after Stop returns %v, want %v", err, closed)
		}
		b.Set("b", 5*time.Second)
		time.Sleep(time.Minute)
		b.wantDeleted()
		for key, want := range map[string]time.Duration{"a": 7 * time.Second, "b": 5 * time.Second, "absent": 0} {
			if left := b.Left(key); left != want {
				t.Errorf("%s has %v left, want %v", key, left, want)
			}
		}
	})
}

// Stop waits for a delete in progress.
func TestStopWaitsForTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed, isDone := make(chan struct{}), false
		q := New(func([]string) { <-proceed; isDone = true }, nil)
		q.Set("a", time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		go func() { time.Sleep(time.Minute); close(proceed) }()
		q.Stop(errors.New("closed"))
		if !isDone {
			t.Error("Stop returned while the owner was still deleting")
		}
	})
}

func TestManyKeysEndTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		const keys = 10_000
		for i := range keys {
			b.Set(fmt.Sprint(i), 5*time.Second)
		}
		time.Sleep(5 * time.Second)
		if got := b.allDeleted(); len(got) != keys || b.Len() != 0 {
			t.Errorf("got %d of %d keys deleted, %d left", len(got), keys, b.Len())
		}
	})
}
