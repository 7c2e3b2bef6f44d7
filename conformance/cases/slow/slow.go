package slow

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// exact reads what there is and holds it against what was written after a version, one after another. It returns the version that it has
// come to, and why the stream ended: an ERROR event is an error, too.
func exact(s *harness.Watch, at listwatch.Version) (listwatch.Version, error) {
	s.Helper()
	last := s.Newest()
	for at != last {
		w, err := s.Receive()
		if err != nil {
			return at, err
		}
		ev, err := w.Event()
		if err != nil {
			return at, err
		}
		if want := s.NextWriteAfter(at); ev.Version != want {
			s.Fatalf("got version %d after %d, want %d", ev.Version, at, want)
		}
		at = ev.Version
	}
	return at, nil
}

func oneSlowOthersFast(e *harness.Env) {
	start := e.Put("a")
	e.Dial(harness.From(start)) // and not read
	var fast []*harness.Watch
	for range 3 {
		fast = append(fast, e.Dial(harness.From(start)))
	}
	for range harness.FillsSockets {
		begin := time.Now()
		e.PutMany(1)
		for _, s := range fast {
			if got := s.Next(); got.Version != e.Newest() {
				e.Fatalf("got version %d, want %d", got.Version, e.Newest())
			}
		}
		if waited := time.Since(begin); waited > 0 {
			e.Fatalf("a reader waited %v because another one has stalled", waited)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// mostStalled is how long a reader may take nothing.
const mostStalled = 2 * time.Minute

func slowTerminated(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.From(start))
	e.PutMany(harness.FillsSockets)
	e.Use(harness.CountsWatches)
	if took := e.WaitForWatches(0); took > mostStalled {
		e.Errorf("the stalled reader was given up after %v, want within %v", took, mostStalled)
	}
	at, err := exact(s, start)
	if err == nil {
		e.Fatal("the whole history came: nothing was kept back from the reader")
	}
	if err == io.EOF {
		e.Error("the stream that was cut off ended cleanly")
	}
	if at, err = exact(e.Dial(harness.From(at)), at); err != nil {
		e.Errorf("resumed, got %v after version %d", err, at)
	}
}

func writeDeadline(e *harness.Env) {
	start := e.Put("a")
	stalled, pausing := e.Dial(harness.From(start)), e.Dial(harness.From(start)+"&"+harness.LabelSelector("!other"))
	e.PutMany(harness.FillsSockets)
	<-time.After(writeTimeout - time.Second)
	if at, err := exact(pausing, start); err != nil {
		e.Errorf("the reader that paused got %v after version %d", err, at)
	}
	// At most three times as long may be taken to notice (transport.Options).
	<-time.After(2*writeTimeout + 2*time.Second)
	if at, err := exact(stalled, start); err == nil || err == io.EOF {
		e.Errorf("the stalled reader got %v after version %d, want it to be cut off", err, at)
	}
}

// boundedMemory: what was written is much more than the history keeps.
func boundedMemory(e *harness.Env) {
	e.Use(harness.InProcess)
	const watches, writes, most = 5, 56, 5 << 19
	start := e.Put("a")
	for range watches {
		e.WatchRaw(harness.From(start)).WantAccepted() // and not read
	}
	paced := e.Dial(harness.From(start)) // whoever is woken by a write has had the time to take it
	before := harness.HeapBytes()
	for range writes {
		e.PutMany(1)
		paced.Next()
	}
	grown := harness.HeapBytes() - before
	e.Logf("the heap grew by %d KiB", grown>>10)
	if grown > most {
		e.Errorf("that is because of %d KiB that were written beside %d readers that stalled; want at most %d KiB", writes*64, watches, most>>10)
	}
}

// noSilentDrop: the readers read now and then, the first one always and the last one never, and the window is soon past those that don't.
func noSilentDrop(e *harness.Env) {
	const readers, rounds, burst = 3, 14, 4
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	start := e.Put("a")
	var streams [readers]*harness.Watch
	var at [readers]listwatch.Version
	var ended [readers]error
	for i := range streams {
		streams[i], at[i] = e.Dial(harness.From(start)), start
	}
	for range rounds {
		e.PutMany(1 + random.IntN(burst))
		<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
		for i, s := range streams {
			if ended[i] == nil && random.IntN(readers-1) >= i {
				at[i], ended[i] = exact(s, at[i])
			}
		}
	}
	for i, s := range streams {
		if ended[i] == nil {
			at[i], ended[i] = exact(s, at[i])
		}
		if ended[i] == io.EOF {
			e.Errorf("reader %d: the stream ended cleanly at version %d, before %d", i, at[i], e.Newest())
		}
	}
	if ended[0] != nil || ended[readers-1] == nil {
		e.Errorf("the reader that always read got %v, the one that never did %v; want that one alone to be ended", ended[0], ended[readers-1])
	}
}

func clientBackpressure(e *harness.Env) {
	const count = 3000
	name := strings.Repeat("a", 500)
	var sent atomic.Int64
	step := e.Accept(transport.Options{WriteTimeout: -1, PingInterval: -1}, func(stream *transport.Stream) {
		for i := range count {
			frame, err := stream.Encoder.Event(harness.AddedEvent(name, fmt.Sprint(i+2)))
			if err != nil || stream.Sender.Send([][]byte{frame}) != nil {
				break // the client has left
			}
			sent.Add(1)
		}
		<-stream.Done
		_ = stream.Sender.Close(transport.Abort)
	})
	script, at := e.ServeInTurn(step)
	w := e.Follow(e.Remote(at), 1)
	<-time.After(20 * time.Minute)
	if n := sent.Load(); n > count/2 {
		e.Errorf("the client took %d of %d events that nobody read", n, count)
	}
	for want := listwatch.Version(2); want < count+2; want++ {
		if got, err := e.NextOf(w); err != nil || got.Version != want {
			e.Fatalf("got version %d, %v; want %d", got.Version, err, want)
		}
	}
	if n := len(script.RequestTimes()); n != 1 {
		e.Errorf("the client asked %d times, want once: a slow reader is no silence", n)
	}
}

func flushLatency(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.From(start))
	for range 10 {
		<-time.After(700 * time.Millisecond)
		begin, v := time.Now(), e.Put("a")
		if got, waited := s.Next(), time.Since(begin); got.Version != v || waited > 0 {
			e.Errorf("got version %d after %v, want %d at once", got.Version, waited, v)
		}
	}

	const events = 1000
	for range events {
		e.Put("a")
	}
	wired, wires := e.WithConnections()
	if _, err := exact(wired.Dial(harness.From(start)), start); err != nil {
		e.Fatal(err)
	}
	// A reader that is quick sees a write in several pieces, so that the bound is a wide one.
	if reads := wires.Last().Reads.Load(); reads > events*2/3 {
		e.Errorf("%d events that were ready came in %d pieces: want many in one", events, reads)
	}
}
