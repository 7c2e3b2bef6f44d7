package slow

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// readExactly reads events until it has read the newest write. The test fails unless the events are
// exactly the writes after the given version, in order. readExactly returns the last version that
// it read and the error that ended the stream, if any. An ERROR event counts as an error.
func readExactly(s *harness.Watch, after listwatch.Version) (listwatch.Version, error) {
	s.Helper()
	at, newest := after, s.Newest()
	for at != newest {
		w, err := s.Receive()
		if err != nil {
			return at, err
		}
		ev, err := w.Event()
		if err != nil {
			return at, err
		}
		if want := s.NextWriteAfter(at); ev.Version != want {
			s.Fatalf("got version %d after version %d, want %d", ev.Version, at, want)
		}
		at = ev.Version
	}
	return at, nil
}

func oneSlowOthersFast(e *harness.Env) {
	start := e.Put("a")
	e.Dial(harness.From(start)) // the stalled reader
	var fast []*harness.Watch
	for range 3 {
		fast = append(fast, e.Dial(harness.From(start)))
	}
	for range harness.WritesToFillBuffers {
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

// maxStall is the time within which the server must end the watch of a stalled reader.
const maxStall = 2 * time.Minute

func slowTerminated(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.From(start))
	e.Use(harness.CountsWatches)
	e.WaitForWatches(1) // the headers arrive before the server counts the watch
	e.PutMany(harness.WritesToFillBuffers)
	if took := e.WaitForWatches(0); took > maxStall {
		e.Errorf("the watch of the stalled reader ended after %v, want at most %v", took, maxStall)
	}
	at, err := readExactly(s, start)
	if err == nil {
		e.Fatal("the reader received the whole history, so it was never slow")
	}
	if err == io.EOF {
		e.Error("the stream ended cleanly, want an error")
	}
	if at, err = readExactly(e.Dial(harness.From(at)), at); err != nil {
		e.Errorf("resumed watch: got %v after version %d", err, at)
	}
}

func writeDeadline(e *harness.Env) {
	start := e.Put("a")
	stalled, pausing := e.Dial(harness.From(start)), e.Dial(harness.From(start)+"&"+harness.LabelSelector("!other"))
	e.PutMany(harness.WritesToFillBuffers)
	<-time.After(writeTimeout - time.Second)
	if at, err := readExactly(pausing, start); err != nil {
		e.Errorf("the reader that paused got %v after version %d", err, at)
	}
	// The server may take up to three times the timeout, including the wait above, to notice a
	// stalled reader (see transport.Options).
	<-time.After(2*writeTimeout + 2*time.Second)
	if at, err := readExactly(stalled, start); err == nil || err == io.EOF {
		e.Errorf("the stalled reader got %v after version %d, want the connection to be broken", err, at)
	}
}

// boundedMemory writes much more than the history retains, and checks that watches of stalled
// readers do not make the heap grow.
func boundedMemory(e *harness.Env) {
	e.Use(harness.InProcess)
	const watches, writes = 5, 56
	maxGrowth := 5 << 19
	if e.OpensOverHTTP2() {
		maxGrowth += watches * (256 << 10) // the client's gateway to HTTP/2 also buffers data
	}
	start := e.Put("a")
	for range watches {
		e.WatchRaw(harness.From(start)).WantAccepted() // the stalled readers
	}
	// Below, the case reads one event from paced after each write. This gives the other watches
	// time to process the write.
	paced := e.Dial(harness.From(start))
	before := harness.HeapBytes()
	for range writes {
		e.PutMany(1)
		paced.Next()
	}
	grown := harness.HeapBytes() - before
	e.Logf("the heap grew by %d KiB", grown>>10)
	if grown > maxGrowth {
		e.Errorf("the heap grew by %d KiB after writes of %d KiB with %d stalled readers, want at most %d KiB",
			grown>>10, writes*64, watches, maxGrowth>>10)
	}
}

// noSilentDrop has three readers. In each round the first reader reads, the second reads with a
// probability of one half, and the third does not read. The history soon drops the events that a
// reader has not read.
func noSilentDrop(e *harness.Env) {
	const readers, rounds, burst = 3, 14, 4
	random := e.Random()
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
				at[i], ended[i] = readExactly(s, at[i])
			}
		}
	}
	for i, s := range streams {
		if ended[i] == nil {
			at[i], ended[i] = readExactly(s, at[i])
		}
		if ended[i] == io.EOF {
			e.Errorf("reader %d: the stream ended cleanly at version %d, before %d", i, at[i], e.Newest())
		}
	}
	if ended[0] != nil || ended[readers-1] == nil {
		e.Errorf("the reader that always read got %v, want no error; the reader that never read got %v, want an error",
			ended[0], ended[readers-1])
	}
}

func clientBackpressure(e *harness.Env) {
	const count = 3000
	name := strings.Repeat("a", 500)
	var sent atomic.Int64
	o := transport.Options{WriteTimeout: -1, PingInterval: -1}
	handler := e.Accept(o, func(stream *transport.Stream, done <-chan struct{}) {
		for i := range count {
			frame, err := stream.Encoder.Frame(framing.FromEvent(harness.AddedEvent(name, fmt.Sprint(i+2))))
			if err != nil || stream.Sender.Send([][]byte{frame}) != nil {
				break // the client has disconnected
			}
			sent.Add(1)
		}
		<-done
		_ = stream.Sender.Close(transport.Abort)
	})
	requests, route := e.ServeSequence(handler)
	w := e.Follow(e.Remote(route), 1)
	<-time.After(20 * time.Minute)
	if n := sent.Load(); n > count/2 {
		e.Errorf("the client buffered %d of %d events while its reader was idle", n, count)
	}
	for want := listwatch.Version(2); want < count+2; want++ {
		if got, err := e.NextOf(w); err != nil || got.Version != want {
			e.Fatalf("got version %d, %v; want %d", got.Version, err, want)
		}
	}
	if n := len(requests.RequestTimes()); n != 1 {
		e.Errorf("the client sent %d requests, want 1: it must not reconnect because its own reader is slow", n)
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

	if e.IsVariant("ws-gorilla") || e.IsVariant("ws-nhooyr") {
		return // these libraries write each message separately
	}
	const events = 1000
	for range events {
		e.Put("a")
	}
	remote, conns := e.WithConnections()
	if _, err := readExactly(remote.Dial(harness.From(start)), start); err != nil {
		e.Fatal(err)
	}
	// A fast reader may see one write in several reads, so the limit is generous.
	if reads := conns.Last().Reads.Load(); reads > events*2/3 {
		e.Errorf("got %d pending events in %d reads, want many events per read", events, reads)
	}
}

func coalesceHonest(e *harness.Env) {
	start := e.Put("a")
	w := e.Dial(harness.From(start) + "&conflate=0")
	if w.Header().Get(transport.ConflateHeader) == "" {
		e.Skipf("the server does not support conflate")
	}
	var last listwatch.Version
	const writes = 5000
	for n := range writes {
		if last = e.Put(string(rune('a' + n%5))); n%500 == 0 {
			last = e.Delete("a")
		}
	}
	got, err := w.ReadThrough(last)
	if err != nil {
		e.Fatal(err)
	}
	if len(got) > writes/2 {
		e.Errorf("a reader that stalled got %d events of %d writes", len(got), writes)
	}
	if err := e.CheckConflated(start, got); err != nil {
		e.Error(err)
	}
}
