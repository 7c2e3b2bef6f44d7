package timers

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// After a random sequence of Set and Stop, each function must have been called at the times that a
// simple model predicts.
func TestEntriesFireAtTheirTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) [3]int {
			return [3]int{
				rapid.IntRange(0, 9).Draw(rt, "entry"), rapid.IntRange(-1, 50).Draw(rt, "wait"),
				rapid.IntRange(0, 20).Draw(rt, "pause"),
			}
		})).Draw(rt, "steps")
		failure := ""
		synctest.Test(t, func(t *testing.T) {
			var q Queue
			var entries [10]Entry
			want, got := [10]time.Time{}, [10]time.Time{}
			var mu sync.Mutex // guards got, because the race detector does not know the fake clock
			for i := range entries {
				entries[i].Call = func() {
					mu.Lock()
					defer mu.Unlock()
					got[i] = time.Now()
				}
			}
			check := func() {
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				for i := range entries {
					if due := !want[i].IsZero() && !time.Now().Before(want[i]); due && !got[i].Equal(want[i]) ||
						!due && !got[i].IsZero() {
						failure = fmt.Sprintf("entry %d fired at %v, want %v, at %v", i, got[i], want[i], time.Now())
					}
				}
			}
			for _, s := range steps {
				i, wait := s[0], time.Duration(s[1])*time.Second
				mu.Lock()
				got[i] = time.Time{}
				mu.Unlock()
				if wait < 0 {
					want[i] = time.Time{}
					q.Stop(&entries[i])
				} else {
					want[i] = time.Now().Add(wait)
					q.Set(&entries[i], q.Time(want[i]))
				}
				time.Sleep(time.Duration(s[2]) * time.Second)
				check()
			}
			time.Sleep(time.Minute)
			check()
			if len(q.set) != 0 {
				failure = fmt.Sprintf("%d entries are left", len(q.set))
			}
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

func TestEntryCanSetItselfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		var e Entry
		start, n := time.Now(), 0
		e.Call = func() {
			if n++; n < 10 {
				q.Set(&e, q.Now().Add(time.Second))
			}
		}
		q.Set(&e, q.Time(start.Add(-time.Hour))) // in the past: at once
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n != 10 {
			t.Errorf("the entry was called %d times, want 10", n)
		}
	})
}

func BenchmarkSet(b *testing.B) {
	var q Queue
	entries := make([]Entry, 100_000)
	start := q.Now().Add(time.Hour)
	i := 0
	for b.Loop() {
		q.Set(&entries[i%len(entries)], start.Add(time.Duration(i*7919%100_003)*time.Millisecond))
		i++
	}
}
