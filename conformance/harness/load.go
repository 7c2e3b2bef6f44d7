package harness

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/internal/racetest"
)

// Scaled reduces a number of objects or clients under the race detector, which is slow and
// needs fewer of them to find races.
func Scaled(n int) int {
	if racetest.Enabled {
		return n / 5
	}
	return n
}

// Concurrently calls do(0) to do(n-1) in parallel and fails the case if any call returns an error.
// A call may skip the case.
func (e *Env) Concurrently(n int, do func(i int) error) {
	e.Helper()
	errs := make([]error, n)
	var returned atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = do(i)
			returned.Add(1)
		})
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		e.Fatalf("%d of %d calls failed; one of the errors: %v", len(failed), n, failed[0])
	}
	if returned.Load() < int64(n) {
		runtime.Goexit() // a call has skipped or failed the case, and so ended only its goroutine
	}
}

// RandomText returns about n bytes of hexadecimal text without repetitions, which
// compresses badly.
func RandomText(n int, seed uint64) string {
	var from [32]byte
	binary.LittleEndian.PutUint64(from[:], seed)
	random := make([]byte, (n+1)/2)
	_, _ = rand.NewChaCha8(from).Read(random) // never fails
	return hex.EncodeToString(random)
}

// HeapBytes collects garbage and returns the size of the live heap objects in bytes.
func HeapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// IsTimeout reports whether err is a network timeout.
func IsTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// PutPadded writes an object with padding. The padding must not contain characters that JSON
// escapes.
func (e *Env) PutPadded(name, padding string) {
	e.Helper()
	e.PutJSON(name, fmt.Sprintf(`{"n":%d,"padding":"%s"}`, e.nextCount(), padding))
}

// SendN sends n values to a channel.
func SendN(writes chan<- struct{}, n int) {
	for range n {
		writes <- struct{}{}
	}
}

// WaitForWatches waits until the number of open watches at the server is want, and returns
// the time that this took. It returns at once if the target lacks the ability CountsWatches.
func (e *Env) WaitForWatches(want int) time.Duration {
	e.Helper()
	if !e.Supports(CountsWatches) {
		return 0
	}
	start := time.Now()
	for {
		got, waited := e.OpenWatches(), time.Since(start)
		if got == want {
			return waited
		}
		if waited > e.Patience() {
			e.Fatalf("the server has %d watches open after %v, want %d", got, waited, want)
		}
		<-time.After(time.Millisecond + waited/8)
	}
}

// WritesToFillBuffers is the number of PutMany writes that fill all buffers between a server and a
// client that does not read.
const WritesToFillBuffers = 14

// PutMany writes an object n times, with 64 KiB of padding each time.
func (e *Env) PutMany(n int) {
	e.Helper()
	padding := strings.Repeat("x", 64<<10)
	for range n {
		e.PutPadded("a", padding)
	}
}

// PutLabelled writes an object with size bytes of padding and a label "to" with the given value.
func (e *Env) PutLabelled(name, to string, size int) {
	e.Helper()
	if _, err := e.TryPutSpec(name, map[string]string{"to": to},
		map[string]any{"padding": strings.Repeat("x", size)}); err != nil {
		e.Fatal(err)
	}
}

// WriteEvery writes an object after each pause until stop is called.
func (e *Env) WriteEvery(pause time.Duration) (stop func()) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
			if _, err := e.TryPut("busy"); err != nil {
				e.Errorf("put: %v", err)
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		wg.Wait()
	})
}

// Repeat yields 0, 1, 2 and so on for eight seconds, but at least as many values as the first
// argument and at most as many as the second. A case that gains certainty by repetition uses Repeat
// to stay within its time limit on a slow machine.
func Repeat(least, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		start := time.Now()
		for i := 0; i < most && (i < least || time.Since(start) < 8*time.Second); i++ {
			if !yield(i) {
				return
			}
		}
	}
}
