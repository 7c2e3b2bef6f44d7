package watchserver_test

import (
	"context"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/watchserver"
)

var bubble = regexp.MustCompile(`synctest bubble \d+`)

// goroutinesOf returns, for each name, the number of goroutines in the caller's bubble whose stacks
// contain it. Other goroutines do not count, because goroutines of earlier tests, whose servers had
// sockets, may still be running.
func goroutinesOf(names ...string) []int {
	stacks := make([]byte, 1<<20)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	counts := make([]int, len(names))
	for _, goroutine := range all {
		calls, _, _ := strings.Cut(goroutine, "\ncreated by ")
		for i, name := range names {
			if bubble.FindString(goroutine) == bubble.FindString(all[0]) && strings.Contains(calls, name) {
				counts[i]++
			}
		}
	}
	return counts
}

func TestIdleWatchTakesOneGoroutineAtMost(t *testing.T) {
	for _, detach := range []bool{false, true} {
		configure := func(s *watchserver.Server) { s.Detach = detach }
		onEachTransport(t, configure, func(f *fixture, c transport.Client) {
			w := f.watch(c, "")
			f.put("a", nil)
			w.want("ADDED a")
			synctest.Wait()
			// The handler of a hijacked connection is also its reader. An HTTP/2 connection has one
			// reader for all streams, which is not counted.
			handlers, readers := 1, 1
			if c.Name() == "h2" {
				readers = 0
			}
			if detach {
				handlers = 0
			}
			n := goroutinesOf("watchserver.(*stream).drive(", "watchserver.(*stream).run(",
				"transport/chunked.(*stream).serve(", "transport/websocket.(*stream).read(")
			if n[0] != 0 || n[1] != handlers || n[2]+n[3] != readers {
				f.Errorf("detached %v: got %d drivers, %d handlers, %d readers; want 0, %d, %d", detach, n[0], n[1],
					n[2]+n[3], handlers, readers)
			}
			if total := goroutinesOf("transport/chunked.(*stream).", "transport/websocket.(*stream).",
				"watchserver.(*stream)."); max(total[0]+total[1], total[2]) > 1 {
				f.Errorf("detached %v: got %v goroutines, want 1", detach, total)
			}
		})
	}
}

// A steppedServer is a transport whose streams run their driver only when the test calls step.
type steppedServer struct {
	transport.Server
	*steps
}

type steps struct {
	mu sync.Mutex
	// Guarded by mu.
	scheduled []func()
	sends     int
}

func (s steppedServer) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	stream, err := s.Server.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	stream.Sender = sendCounter{stream.Sender, s.steps}
	return stream, nil
}

type sendCounter struct {
	transport.Sender
	*steps
}

func (c sendCounter) Run(f func()) { f() }

func (c sendCounter) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scheduled = append(c.scheduled, f)
}

func (c sendCounter) Send(frames [][]byte) error {
	c.mu.Lock()
	c.sends++
	c.mu.Unlock()
	return c.Sender.Send(frames)
}

// step runs the functions that the streams have scheduled, and returns their number and the number
// of calls of Send.
func (s *steps) step() (ran, sent int) {
	synctest.Wait()
	s.mu.Lock()
	run := s.scheduled
	s.scheduled, s.sends = nil, 0
	s.mu.Unlock()
	for _, f := range run {
		f()
	}
	synctest.Wait() // for the streams that are behind
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(run), s.sends
}

func (s *steps) want(t *testing.T, when string, run, sends int) {
	t.Helper()
	if r, n := s.step(); r != run || n != sends {
		t.Errorf("%s: the transport ran %d functions with %d sends, want %d with %d", when, r, n, run, sends)
	}
}

func TestTransportSchedulesEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(steps)
		f := newFixture(t, func(ws *watchserver.Server) {
			ws.Transports = []transport.Server{steppedServer{chunked.Server{}, s}}
			ws.Timing.Heartbeat = -1
		})
		for range 100 { // more than a batch, less than two
			if _, err := f.flags.Create(f.Context(),
				Flag{Metadata: listwatch.Metadata{GenerateName: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		w := f.watch(f.Client("chunked"),
			"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		s.want(t, "the first batch", 1, 1)
		s.want(t, "the second batch", 1, 1)
		s.want(t, "a stream at rest", 0, 0)
		for range 3 {
			f.put("b", nil)
			synctest.Wait()
		}
		s.want(t, "three events while one step was scheduled", 1, 1)
		s.want(t, "a stream at rest", 0, 0)
		w.Close()
		s.want(t, "after the client has disconnected", 1, 0)
		s.want(t, "after the end", 0, 0)
		if n := len(f.WatchServer.Watches()); n != 0 {
			t.Errorf("%d watches are still open", n)
		}
	})
}

func TestPanicInAHookEndsOnlyTheWatch(t *testing.T) {
	trace := map[string]*watchserver.Trace{
		"Opened": {Opened: func(context.Context, watchserver.Watch) { panic("in a hook") }},
		"Sent":   {Sent: func(context.Context, watchserver.Watch, watchserver.Write) { panic("in a hook") }},
		"Closed": {Closed: func(context.Context, watchserver.Watch, watchserver.EndReason,
			error,
		) {
			panic("in a hook")
		}},
	}
	for name, hooks := range trace {
		onEachTransport(t, func(s *watchserver.Server) { s.Trace = hooks }, func(f *fixture, c transport.Client) {
			w := f.watch(c, "timeoutSeconds=10")
			f.put("a", nil)
			for {
				if _, err := w.Receive(); err != nil {
					break
				}
			}
			synctest.Wait()
			if n := len(f.WatchServer.Watches()); n != 0 {
				f.Errorf("%s: %d watches are still open", name, n)
			}
			f.watch(c, "") // the server still works
		})
	}
}

// The client leaves its connection open after the end of the watch.
func TestHandlerReturnsWithTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		returned := make(chan time.Time, 1)
		f.wrap = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				returned <- time.Now()
			})
		}
		conn, err := f.Server.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _,
			err := conn.Write([]byte("GET /flags?watch=1&timeoutSeconds=10 HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if took := (<-returned).Sub(start); took != 10*time.Second {
			t.Errorf("the handler returned after %v, want 10s", took)
		}
	})
}
