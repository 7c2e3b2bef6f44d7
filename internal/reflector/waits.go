package reflector

import (
	"cmp"
	"io"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
)

const (
	// briefly is how long a stream without any event must live not to be a failure.
	briefly = time.Second
	// AfterBrief is waited at least after such a stream.
	AfterBrief = 100 * time.Millisecond
)

// An End is how a stream ended, or that it could not be opened.
type End struct {
	// Opened is false where there was no stream; then Lived and Received mean nothing.
	Opened bool
	// Lived is how long the stream was open, Received how many events it brought.
	Lived    time.Duration
	Received int
	// Err is io.EOF where the stream came to a clean end.
	Err error
}

// IsBrief reports whether the stream lived shortly and for nothing: a server that ends streams at once must not be asked at once again.
func (e End) IsBrief() bool { return e.Opened && e.Received == 0 && e.Lived < briefly }

// IsClean reports whether the stream came to a clean end. errors.Is won't do: a connection that broke while it was dialled may wrap io.EOF.
func (e End) IsClean() bool { return e.Err == io.EOF }

// Waits counts failures in a row. The zero value has seen none. It is not safe for concurrent use.
type Waits struct {
	step int // how many waits in a row have doubled
}

// After returns how long to wait after e before the next stream.
func (w *Waits) After(b listwatch.Backoff, e End) time.Duration {
	if e.Opened && e.Lived >= cmp.Or(b.Healthy, 2*time.Minute) {
		w.step = 0
	}
	bound := max(cmp.Or(b.Min, 800*time.Millisecond), 1)
	if e.IsClean() && !e.IsBrief() {
		return jitter(bound)
	}
	longest := max(cmp.Or(b.Max, 30*time.Second), bound)
	for i := 0; i < w.step && bound < longest; i++ {
		bound *= 2
	}
	w.step++
	wait := jitter(min(bound, longest)) + listwatch.AsError(e.Err).RetryAfter()
	if e.IsBrief() {
		wait += AfterBrief
	}
	return wait
}

// jitter returns a random part of d.
func jitter(d time.Duration) time.Duration { return 1 + rand.N(d) }
