package watchserver_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// A busySource is a source whose initial events take a long time to compute: until finish is
// closed.
type busySource struct {
	listwatch.Source
	finish chan struct{}

	mu      sync.Mutex
	running int // guarded by mu
}

func (s *busySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil || !q.SendsInitialEvents() {
		return w, err
	}
	return &busyPoller{w.(listwatch.Poller), s}, nil
}

func (s *busySource) count(more int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += more
	return s.running
}

type busyPoller struct {
	listwatch.Poller
	source *busySource
}

func (p *busyPoller) Poll(dst []listwatch.Event) (int, error) {
	p.source.count(1)
	<-p.source.finish
	p.source.count(-1)
	return p.Poller.Poll(dst)
}

func TestLiveEventsPrecedeInitialEvents(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		source := &busySource{Source: f.flags, finish: make(chan struct{})}
		f.endpoint = func(*http.Request) watchserver.Endpoint { return watchserver.Endpoint{Source: source} }
		f.put("a", nil)
		live := f.watch(c, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
		storm := 2 * runtime.GOMAXPROCS(0)
		opened := make(chan *openWatch, storm)
		for range storm {
			go func() { opened <- f.watch(c, initial) }() // opens in its turn
		}
		synctest.Wait()
		if n, want := source.count(0), max(1, runtime.GOMAXPROCS(0)-1); n != want {
			f.Errorf("%d streams compute their initial events at once, want %d", n, want)
		}
		f.put("b", nil)
		live.want("ADDED b")
		close(source.finish)
		for range storm {
			w := <-opened
			w.want("ADDED a")
		}
	})
}

// There are more clients that do not read than streams that may compute at once.
func TestStalledClientsHoldNoTurn(t *testing.T) {
	onEachTransport(t, nil, func(f *fixture, c transport.Client) {
		big := map[string]string{"much": strings.Repeat("x", 100<<10)}
		for i := range fillEvents {
			flag := Flag{Metadata: listwatch.Metadata{Name: fmt.Sprintf("f%03d", i), Annotations: big}}
			if _, err := f.flags.Create(f.Context(), flag); err != nil {
				f.Fatal(err)
			}
		}
		for range 2 * runtime.GOMAXPROCS(0) {
			f.watch(c, initial)
			f.watch(f.Client(c.Name()), initial) // on a connection of its own
		}
		synctest.Wait()
		w := f.watch(f.Client(c.Name()), initial)
		for i := range fillEvents {
			w.want(fmt.Sprintf("ADDED f%03d", i))
		}
		if open := len(f.WatchServer.Watches()); open <= 2 {
			f.Errorf("%d watches are open: the stalled clients are gone", open)
		}
		if n := goroutinesOf("watchserver.(*stream).drive")[0]; c.Name() == "h2" && n != 0 {
			f.Errorf("stalled streams of HTTP/2 have %d goroutines, want none", n)
		}
	})
}
