package harness

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Scaled returns how many of something to have where n are wanted: the race detector needs no crowd.
func Scaled(n int) int {
	if Raced {
		return n / 5
	}
	return n
}

// Concurrently does n things at once and tells what goes wrong.
func (e *Env) Concurrently(n int, do func(i int) error) {
	e.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		e.Fatalf("%d of %d: %v", len(failed), n, failed[0])
	}
}

// RandomSeeded returns a source of random numbers, and tells its seed.
func (e *Env) RandomSeeded() *rand.Rand {
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// RandomText is text of about n bytes that says nothing twice.
func RandomText(n int, seed uint64) string {
	var from [32]byte
	binary.LittleEndian.PutUint64(from[:], seed)
	random := make([]byte, (n+1)/2)
	_, _ = rand.NewChaCha8(from).Read(random) // it never fails
	return hex.EncodeToString(random)
}

// HeapBytes returns how many bytes are in use.
func HeapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// IsTimeout reports whether err is a timeout of the network.
func IsTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// PutPadded is put with an object that is large.
func (e *Env) PutPadded(name, padding string) {
	e.Helper()
	if _, err := e.TryPutSpec(name, nil, map[string]any{"padding": padding}); err != nil {
		e.Fatal(err)
	}
}

// SendN sends n values to a channel.
func SendN(writes chan<- struct{}, n int) {
	for range n {
		writes <- struct{}{}
	}
}

// WaitForWatches returns when so many watches are open at the server, and how long that took; at once, where the server does not tell.
func (e *Env) WaitForWatches(want int) time.Duration {
	e.Helper()
	if !e.Can(CountsWatches) {
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

// FillsSockets changes of putMany fill what is between a server and a client that does not read.
const FillsSockets = 14

// PutMany writes n changes of 64 KiB.
func (e *Env) PutMany(n int) {
	e.Helper()
	padding := strings.Repeat("x", 64<<10)
	for range n {
		e.PutPadded("a", padding)
	}
}

// PutLabelled writes a change of a size with label "to".
func (e *Env) PutLabelled(name, to string, size int) {
	e.Helper()
	if _, err := e.TryPutSpec(name, map[string]string{"to": to}, map[string]any{"padding": strings.Repeat("x", size)}); err != nil {
		e.Fatal(err)
	}
}

// WriteEvery writes a change each pause, until the function it returns is called.
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
