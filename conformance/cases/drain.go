package cases

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
)

// draining begins to drain; what it returns waits for the end of that.
func (e *env) draining() (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.drain()
	}()
	return func() { <-done }
}

func drainEndsAll(e *env) {
	start := e.put("a")
	watches := map[string]*stream{e.way.name: e.dial(from(start)), "a second one": e.dial(from(start))}
	for _, w := range e.others() {
		watches[w.name] = e.over(w).dial(from(start))
	}
	e.put("a")
	begin := time.Now()
	wait := e.draining()
	for _, s := range watches {
		s.want("MODIFIED a")
		s.wantEnd()
	}
	wait()
	if took := time.Since(begin); e.setup.FakeTime && took > time.Second {
		e.Errorf("the watches ended after %v, want within a second", took)
	}
}

func drainFinalBookmark(e *env) {
	start := e.put("a")
	busy, silent := e.dial(allowBookmarks+from(start)), e.dial(allowBookmarks+labelled("nobody")+"&"+from(start))
	for range 5 {
		e.put("a")
	}
	wait := e.draining()
	for what, s := range map[string]*stream{"a watch with events": busy, "a silent watch": silent} {
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
		if last.Type != listwatch.Bookmark || last.Version != e.newest() {
			e.Errorf("%s: the last was %v at %d, want a bookmark at %d", what, last.Type, last.Version, e.newest())
		}
	}
	wait()
}

func drainGoAway(e *env) {
	e.use(InProcess)
	start := e.put("a")
	p := e.h2Peer()
	p.watch(1, from(start))
	p.until(isHeadersOf(1))
	e.put("a")
	wait := e.draining()
	p.until(func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamID == 1 && d.StreamEnded()
	})
	wait()
	down := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	go func() { down <- e.shutdown(ctx) }()
	for said := false; ; {
		f, err := p.framer.ReadFrame()
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

func drain1001(e *env) {
	a := e.watch("")
	a.accepted()
	wait := e.draining()
	if code, err := closeCode(a.body); err != nil || code != closedGoingAway {
		e.Errorf("got close code %d, %v; want %d", code, err, closedGoingAway)
	}
	a.conn.Close()
	wait()
}

func drainRefuseNew(e *env) {
	e.drain()
	a := e.watch("")
	a.refused(http.StatusServiceUnavailable, "ServiceUnavailable")
	h := a.header
	if n, err := strconv.Atoi(h.Get("Retry-After")); err != nil || n < 1 {
		e.Errorf("got Retry-After %q, want a number of seconds", h.Get("Retry-After"))
	}
	if got := h.Get("Connection"); e.on != "h2" && got != "close" {
		e.Errorf("got Connection %q, want close", got)
	}
}

func drainRateLimited(e *env) {
	const watches, parts = 60, 3
	ends := make(chan time.Duration, watches)
	var start time.Time
	var wg sync.WaitGroup
	for range watches {
		s := e.dial("")
		wg.Go(func() {
			if _, err := s.Receive(); err != io.EOF {
				e.Errorf("got %v, want a clean end", err)
			}
			ends <- time.Since(start)
		})
	}
	start = time.Now()
	e.drain()
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
func drainNoLoss(e *env) {
	other := e.replica()
	e.use(InProcess)
	var behind atomic.Pointer[site]
	behind.Store(e.site)
	front := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.Load().inside.handler.ServeHTTP(w, r) }))
	f := e.follower(e.remote(front), e.put("a"))
	stop := e.writeEvery(time.Millisecond)
	defer stop()
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	wait := e.draining()
	<-time.After(20 * time.Millisecond)
	wait()
	<-time.After(20 * time.Millisecond) // the client meets a server that has gone
	behind.Store(other.site)
	for range 5 {
		<-time.After(20 * time.Millisecond)
		f.catchUp()
	}
	stop()
	f.catchUp()
}

func drainDeadline(e *env) {
	const grace = 5 * time.Second
	e.dial(from(e.put("a"))) // and not read
	e.putMany(enough)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	start := time.Now()
	e.use(Drains)
	err := e.Drain(ctx)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > grace+grace/10 {
		e.Errorf("the drain ended after %v with %v, want its deadline after %v", took, err, grace)
	}
}
