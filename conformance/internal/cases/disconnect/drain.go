package disconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/internal/h2peer"
)

// startDrain starts to drain the server. The returned function waits until the drain has ended.
func startDrain(e *harness.Env) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.DrainWatches()
	}()
	return func() { <-done }
}

func drainEndsAll(e *harness.Env) {
	start := e.Put("a")
	watches := map[string]*harness.Watch{
		e.Variant.Name: e.Dial(harness.From(start)), "second watch": e.Dial(harness.From(start)),
	}
	for _, w := range e.OtherVariants() {
		watches[w.Name] = e.WithVariant(w).Dial(harness.From(start))
	}
	e.Put("a")
	begin := time.Now()
	wait := startDrain(e)
	for _, s := range watches {
		s.Want("MODIFIED a")
		s.WantEnd()
	}
	wait()
	if took := time.Since(begin); e.Setup.FakeTime && took > time.Second {
		e.Errorf("the watches ended after %v, want within a second", took)
	}
}

func drainFinalBookmark(e *harness.Env) {
	start := e.Put("a")
	busy, idle := e.Dial(harness.AllowBookmarks+harness.From(start)), e.Dial(harness.AllowBookmarks+
		harness.LabelSelector("nobody")+"&"+harness.From(start))
	for range 5 {
		e.Put("a")
	}
	wait := startDrain(e)
	for name, s := range map[string]*harness.Watch{"a watch with events": busy, "an idle watch": idle} {
		var last listwatch.Event
		for {
			w, err := s.Receive()
			if err == io.EOF {
				break
			}
			if err != nil {
				e.Fatalf("%s: got %v, want a clean end", name, err)
			}
			if last, err = w.Event(); err != nil {
				e.Fatalf("%s: got %v", name, err)
			}
		}
		if last.Type != listwatch.Bookmark || last.Version != e.Newest() {
			e.Errorf("%s: the last event is %v at version %d, want a bookmark at version %d", name,
				last.Type, last.Version, e.Newest())
		}
	}
	wait()
}

func drainGoAway(e *harness.Env) {
	e.Use(harness.InProcess)
	start := e.Put("a")
	p := e.DialHTTP2()
	p.Watch(1, harness.From(start))
	p.ReadUntil(h2peer.IsHeaders(1))
	e.Put("a")
	wait := startDrain(e)
	p.ReadUntil(func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamID == 1 && d.StreamEnded()
	})
	wait()
	shutdown := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	go func() { shutdown <- e.Shutdown(ctx) }()
	for gotGoAway := false; ; {
		f, err := p.Framer.ReadFrame()
		if err != nil {
			if !gotGoAway {
				e.Errorf("got %v, want GOAWAY before the end of the connection", err)
			}
			break
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			gotGoAway = true
			if g.ErrCode != http2.ErrCodeNo || g.LastStreamID < 1 {
				e.Errorf("got %v, want code NO_ERROR and a last stream of at least 1", g)
			}
		}
	}
	if err := <-shutdown; err != nil {
		e.Error(err)
	}
}

func drainWSGoingAway(e *harness.Env) {
	a := e.WatchRaw("")
	a.WantAccepted()
	wait := startDrain(e)
	if code, err := wsframe.ReadCloseCode(a.Body); err != nil || code != wsframe.CloseGoingAway {
		e.Errorf("got close code %d, %v; want %d", code, err, wsframe.CloseGoingAway)
	}
	a.Conn.Close()
	wait()
}

func drainRefuseNew(e *harness.Env) {
	e.DrainWatches()
	a := e.WatchRaw("")
	a.WantRefused(http.StatusServiceUnavailable, "ServiceUnavailable")
	h := a.Headers
	if n, err := strconv.Atoi(h.Get("Retry-After")); err != nil || n < 1 {
		e.Errorf("got Retry-After %q, want a positive number of seconds", h.Get("Retry-After"))
	}
	if got := h.Get("Connection"); e.Transport != "h2" && got != "close" {
		e.Errorf("got Connection %q, want close", got)
	}
}

func drainRateLimited(e *harness.Env) {
	const watches, parts = 60, 3
	ends := make(chan time.Duration, watches)
	var start time.Time
	var wg sync.WaitGroup
	for range watches {
		s := e.Dial("")
		wg.Go(func() {
			if _, err := s.Receive(); err != io.EOF {
				e.Errorf("got %v, want a clean end", err)
			}
			ends <- time.Since(start)
		})
	}
	start = time.Now()
	e.DrainWatches()
	wg.Wait()
	var got [parts]int
	for range watches {
		got[min(int((<-ends)/(drainSpread/parts)), parts-1)]++
	}
	for _, n := range got {
		// The probability that fewer than 3 of 60 random ends fall into any one third of
		// drainSpread is about 1 in 26 million, and 1 in 3 million for a run of all 8 variants.
		if n < 3 {
			e.Errorf("the ends of %d watches are not spread over %v: got %v in each third", watches, drainSpread, got)
		}
	}
}

// drainNoLoss runs a client that connects through a proxy. The proxy switches from the drained
// server to another server of the same collection.
func drainNoLoss(e *harness.Env) {
	other := e.WithReplica()
	e.Use(harness.InProcess)
	var backend atomic.Pointer[harness.Route]
	backend.Store(e.Route)
	proxy := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		backend.Load().Internals.Handler.ServeHTTP(w, r)
	}))
	f := newResumingWatch(e, e.Remote(proxy), e.Put("a"))
	stop := e.WriteEvery(time.Millisecond)
	defer stop()
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	wait := startDrain(e)
	<-time.After(20 * time.Millisecond)
	wait()
	<-time.After(20 * time.Millisecond) // the client retries at the drained server
	backend.Store(other.Route)
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	stop()
	f.catchUp()
}

func drainDeadline(e *harness.Env) {
	const grace = 5 * time.Second
	e.Dial(harness.From(e.Put("a"))) // the client never reads
	e.PutMany(harness.WritesToFillBuffers)
	<-time.After(time.Millisecond) // the fake clock advances once the server waits for the client
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	start := time.Now()
	e.Use(harness.Drains)
	err := e.Drain(ctx)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > grace+grace/10 {
		e.Errorf("the drain returned after %v with %v, want context.DeadlineExceeded after %v", took, err, grace)
	}
}
