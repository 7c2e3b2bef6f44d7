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
	"github.com/listwatch/listwatch/conformance/wsframe"
)

// draining begins to drain; what it returns waits for the end of that.
func draining(e *harness.Env) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.DrainWatches()
	}()
	return func() { <-done }
}

func drainEndsAll(e *harness.Env) {
	start := e.Put("a")
	watches := map[string]*harness.Watch{e.Variant.Name: e.Dial(harness.From(start)), "a second one": e.Dial(harness.From(start))}
	for _, w := range e.OtherVariants() {
		watches[w.Name] = e.WithVariant(w).Dial(harness.From(start))
	}
	e.Put("a")
	begin := time.Now()
	wait := draining(e)
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
	busy, silent := e.Dial(harness.AllowBookmarks+harness.From(start)), e.Dial(harness.AllowBookmarks+harness.LabelSelector("nobody")+"&"+harness.From(start))
	for range 5 {
		e.Put("a")
	}
	wait := draining(e)
	for what, s := range map[string]*harness.Watch{"a watch with events": busy, "a silent watch": silent} {
		var last listwatch.Event
		for {
			w, err := s.Receive()
			if err == io.EOF {
				break
			}
			if err != nil {
				e.Fatalf("%s: got %v, want a clean end", what, err)
			}
			if last, err = w.Event(); err != nil {
				e.Fatalf("%s: got %v", what, err)
			}
		}
		if last.Type != listwatch.Bookmark || last.Version != e.Newest() {
			e.Errorf("%s: the last was %v at %d, want a bookmark at %d", what, last.Type, last.Version, e.Newest())
		}
	}
	wait()
}

func drainGoAway(e *harness.Env) {
	e.Use(harness.InProcess)
	start := e.Put("a")
	p := e.DialHTTP2()
	p.Watch(1, harness.From(start))
	p.ReadUntil(harness.IsHeadersOf(1))
	e.Put("a")
	wait := draining(e)
	p.ReadUntil(func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamID == 1 && d.StreamEnded()
	})
	wait()
	down := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	go func() { down <- e.Shutdown(ctx) }()
	for said := false; ; {
		f, err := p.Framer.ReadFrame()
		if err != nil {
			if !said {
				e.Errorf("got %v, want GOAWAY before the end of the connection", err)
			}
			break
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			said = true
			if g.ErrCode != http2.ErrCodeNo || g.LastStreamID < 1 {
				e.Errorf("got %v, want NO_ERROR for what comes after stream 1", g)
			}
		}
	}
	if err := <-down; err != nil {
		e.Error(err)
	}
}

func drain1001(e *harness.Env) {
	a := e.WatchRaw("")
	a.WantAccepted()
	wait := draining(e)
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
		e.Errorf("got Retry-After %q, want a number of seconds", h.Get("Retry-After"))
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
		// That so few of 60 fall into a third by chance happens once in 30,000 runs.
		if n < 6 {
			e.Errorf("of %d watches these many ended in each third of %v: %v", watches, drainSpread, got)
		}
	}
}

// drainNoLoss has a front that leads to one of two servers over a collection.
func drainNoLoss(e *harness.Env) {
	other := e.WithReplica()
	e.Use(harness.InProcess)
	var behind atomic.Pointer[harness.Route]
	behind.Store(e.Route)
	front := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.Load().Internals.Handler.ServeHTTP(w, r) }))
	f := newFollower(e, e.Remote(front), e.Put("a"))
	stop := e.WriteEvery(time.Millisecond)
	defer stop()
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	wait := draining(e)
	<-time.After(20 * time.Millisecond)
	wait()
	<-time.After(20 * time.Millisecond) // the client meets a server that has gone
	behind.Store(other.Route)
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	stop()
	f.catchUp()
}

func drainDeadline(e *harness.Env) {
	const grace = 5 * time.Second
	e.Dial(harness.From(e.Put("a"))) // and not read
	e.PutMany(harness.FillsSockets)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	start := time.Now()
	e.Use(harness.Drains)
	err := e.Drain(ctx)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > grace+grace/10 {
		e.Errorf("the drain ended after %v with %v, want its deadline after %v", took, err, grace)
	}
}
