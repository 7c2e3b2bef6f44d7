package cases

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// waitWatches returns when so many watches are open at the server, and how long that took; at once, where the server does not tell.
func (e *env) waitWatches(want int) time.Duration {
	e.Helper()
	if !e.can(CountsWatches) {
		return 0
	}
	start := time.Now()
	for {
		got, waited := e.OpenWatches(), time.Since(start)
		if got == want {
			return waited
		}
		if waited > e.patience() {
			e.Fatalf("the server has %d watches open after %v, want %d", got, waited, want)
		}
		<-time.After(time.Millisecond + waited/8)
	}
}

// enough changes of putMany fill what is between a server and a client that does not read.
const enough = 14

// putMany writes n changes of 64 KiB.
func (e *env) putMany(n int) {
	e.Helper()
	padding := strings.Repeat("x", 64<<10)
	for range n {
		e.putPadded("a", padding)
	}
}

// putLabelled writes a change of a size with label "to".
func (e *env) putLabelled(name, to string, size int) {
	e.Helper()
	if _, err := e.tryPutSpec(name, map[string]string{"to": to}, map[string]any{"padding": strings.Repeat("x", size)}); err != nil {
		e.Fatal(err)
	}
}

// exact reads what there is and holds it against what was written after a version, one after another. It returns the version that it has
// come to, and why the stream ended: an ERROR event is an error, too.
func (s *stream) exact(at listwatch.Version) (listwatch.Version, error) {
	s.Helper()
	last := s.newest()
	for at != last {
		w, err := s.Receive()
		if err != nil {
			return at, err
		}
		ev, err := w.Event()
		if err != nil {
			return at, err
		}
		if want := s.writeAfter(at); ev.Version != want {
			s.Fatalf("got version %d after %d, want %d", ev.Version, at, want)
		}
		at = ev.Version
	}
	return at, nil
}

// writeAfter returns the version of the first write after another.
func (d *data) writeAfter(v listwatch.Version) listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.history {
		if w.version > v {
			return w.version
		}
	}
	return 0
}

func oneSlowOthersFast(e *env) {
	start := e.put("a")
	e.dial(from(start)) // and not read
	var fast []*stream
	for range 3 {
		fast = append(fast, e.dial(from(start)))
	}
	for range enough {
		begin := time.Now()
		e.putMany(1)
		for _, s := range fast {
			if got := s.next(); got.Version != e.newest() {
				e.Fatalf("got version %d, want %d", got.Version, e.newest())
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

func slowTerminated(e *env) {
	start := e.put("a")
	s := e.dial(from(start))
	e.putMany(enough)
	e.use(CountsWatches)
	if took := e.waitWatches(0); took > mostStalled {
		e.Errorf("the stalled reader was given up after %v, want within %v", took, mostStalled)
	}
	at, err := s.exact(start)
	if err == nil {
		e.Fatal("the whole history came: nothing was kept back from the reader")
	}
	if err == io.EOF {
		e.Error("the stream that was cut off ended cleanly")
	}
	if at, err = e.dial(from(at)).exact(at); err != nil {
		e.Errorf("resumed, got %v after version %d", err, at)
	}
}

func writeDeadline(e *env) {
	start := e.put("a")
	stalled, pausing := e.dial(from(start)), e.dial(from(start)+"&"+labelled("!other"))
	e.putMany(enough)
	<-time.After(writeTimeout - time.Second)
	if at, err := pausing.exact(start); err != nil {
		e.Errorf("the reader that paused got %v after version %d", err, at)
	}
	// At most three times as long may be taken to notice (transport.Options).
	<-time.After(2*writeTimeout + 2*time.Second)
	if at, err := stalled.exact(start); err == nil || err == io.EOF {
		e.Errorf("the stalled reader got %v after version %d, want it to be cut off", err, at)
	}
}

// boundedMemory: what was written is much more than the history keeps.
func boundedMemory(e *env) {
	e.use(InProcess)
	const watches, writes, most = 5, 56, 5 << 19
	start := e.put("a")
	for range watches {
		e.watch(from(start)).accepted() // and not read
	}
	paced := e.dial(from(start)) // whoever is woken by a write has had the time to take it
	before := heap()
	for range writes {
		e.putMany(1)
		paced.next()
	}
	grown := heap() - before
	e.Logf("the heap grew by %d KiB", grown>>10)
	if grown > most {
		e.Errorf("that is because of %d KiB that were written beside %d readers that stalled; want at most %d KiB", writes*64, watches, most>>10)
	}
}

// noSilentDrop: the readers read now and then, the first one always and the last one never, and the window is soon past those that don't.
func noSilentDrop(e *env) {
	const readers, rounds, burst = 3, 14, 4
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	start := e.put("a")
	var streams [readers]*stream
	var at [readers]listwatch.Version
	var ended [readers]error
	for i := range streams {
		streams[i], at[i] = e.dial(from(start)), start
	}
	for range rounds {
		e.putMany(1 + random.IntN(burst))
		<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
		for i, s := range streams {
			if ended[i] == nil && random.IntN(readers-1) >= i {
				at[i], ended[i] = s.exact(at[i])
			}
		}
	}
	for i, s := range streams {
		if ended[i] == nil {
			at[i], ended[i] = s.exact(at[i])
		}
		if ended[i] == io.EOF {
			e.Errorf("reader %d: the stream ended cleanly at version %d, before %d", i, at[i], e.newest())
		}
	}
	if ended[0] != nil || ended[readers-1] == nil {
		e.Errorf("the reader that always read got %v, the one that never did %v; want that one alone to be ended", ended[0], ended[readers-1])
	}
}

func clientBackpressure(e *env) {
	const count = 3000
	name := strings.Repeat("a", 500)
	var sent atomic.Int64
	step := e.accepts(transport.Options{WriteTimeout: -1, PingInterval: -1}, func(stream *transport.Stream) {
		for i := range count {
			frame, err := stream.Encoder.Event(added(name, fmt.Sprint(i+2)))
			if err != nil || stream.Sender.Send([][]byte{frame}) != nil {
				break // the client has left
			}
			sent.Add(1)
		}
		<-stream.Done
		_ = stream.Sender.Close(transport.Abort)
	})
	script, at := e.play(step)
	w := e.follow(e.remote(at), 1)
	<-time.After(20 * time.Minute)
	if n := sent.Load(); n > count/2 {
		e.Errorf("the client took %d of %d events that nobody read", n, count)
	}
	for want := listwatch.Version(2); want < count+2; want++ {
		if got, err := e.nextOf(w); err != nil || got.Version != want {
			e.Fatalf("got version %d, %v; want %d", got.Version, err, want)
		}
	}
	if n := len(script.times()); n != 1 {
		e.Errorf("the client asked %d times, want once: a slow reader is no silence", n)
	}
}

func flushLatency(e *env) {
	start := e.put("a")
	s := e.dial(from(start))
	for range 10 {
		<-time.After(700 * time.Millisecond)
		begin, v := time.Now(), e.put("a")
		if got, waited := s.next(), time.Since(begin); got.Version != v || waited > 0 {
			e.Errorf("got version %d after %v, want %d at once", got.Version, waited, v)
		}
	}

	const events = 1000
	for range events {
		e.put("a")
	}
	wired, wires := e.wired()
	if _, err := wired.dial(from(start)).exact(start); err != nil {
		e.Fatal(err)
	}
	// A reader that is quick sees a write in several pieces, so that the bound is a wide one.
	if reads := wires.last().reads.Load(); reads > events*2/3 {
		e.Errorf("%d events that were ready came in %d pieces: want many in one", events, reads)
	}
}
