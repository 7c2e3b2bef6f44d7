package watchserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// A pollServer models a third party's transport that uses Stream.Finish: it ends each stream after
// a minute, or as soon as the stream has sent an event and the client can resume.
type pollServer struct {
	transport.Server
	*progress
}

// progress records the calls of Stream.Progress for one stream.
type progress struct {
	mu sync.Mutex
	// Guarded by mu.
	events    int               // the number of events sent
	unsynced  int               // the number of events reported with version zero
	resumable listwatch.Version // the last version reported
}

func (p pollServer) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	s, err := p.Server.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	finish := make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	timer := time.AfterFunc(time.Minute, end)
	context.AfterFunc(r.Context(), func() { timer.Stop() })
	s.Finish = finish
	s.Progress = func(events int, at listwatch.Version) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events += events
		p.resumable = at
		if at == 0 {
			p.unsynced += events
		} else if p.events > 0 {
			end()
		}
	}
	return s, nil
}

// onEachPoll is like onEachTransport, but each transport is a pollServer, and it serves the result
// of source.
func onEachPoll(t *testing.T, source func(listwatch.Source) listwatch.Source,
	test func(f *fixture, c transport.Client, p *progress),
) {
	var p *progress
	configure := func(s *watchserver.Server) {
		s.Source = source(s.Source)
		s.Transports, p = nil, new(progress)
		for _, server := range []transport.Server{&websocket.Server{}, h2.Server{}, chunked.Server{}} {
			s.Transports = append(s.Transports, pollServer{server, p})
		}
	}
	onEachTransport(t, configure, func(f *fixture, c transport.Client) {
		test(f, c, p)
	})
}

func asIs(s listwatch.Source) listwatch.Source { return s }

// A plainSource hides that the watchers of its Source are Pollers.
type plainSource struct{ listwatch.Source }

func (s plainSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return struct{ listwatch.Watcher }{w}, err
}

func hidePollers(s listwatch.Source) listwatch.Source { return plainSource{s} }

func TestATransportLearnsTheEndOfInitialEvents(t *testing.T) {
	for name, source := range map[string]func(listwatch.Source) listwatch.Source{
		"pollers":  asIs,
		"watchers": hidePollers,
	} {
		for _, count := range []int{0, 1, 64, 200} { // 64 is the size of a batch
			t.Run(fmt.Sprintf("%s/%d", name, count), func(t *testing.T) {
				onEachPoll(t, source, func(f *fixture, c transport.Client, p *progress) {
					for i := range count {
						f.put(fmt.Sprintf("f%03d", i), nil)
					}
					w := f.watch(c, "allowWatchBookmarks=true")
					for i := range count {
						w.want(fmt.Sprintf("ADDED f%03d", i))
					}
					w.want("BOOKMARK") // the end of the initial events
					w.want("BOOKMARK") // the end of the stream
					w.wantEnd()
					p.mu.Lock()
					defer p.mu.Unlock()
					if p.events != count+1 || p.unsynced < count-64 || p.unsynced > count || p.resumable == 0 {
						f.Errorf(
							"got %d events, %d of them without a version, and then version %d; want %d events and a bookmark with a version",
							p.events, p.unsynced, p.resumable, count)
					}
				})
			})
		}
	}
}

func TestATransportEndsItsStreamCleanly(t *testing.T) {
	onEachPoll(t, asIs, func(f *fixture, c transport.Client, p *progress) {
		recorder := new(traceRecorder)
		f.WatchServer.Trace = recorder.trace()
		from := f.put("old", nil).ResourceVersion
		w := f.watch(c, "allowWatchBookmarks=true&resourceVersion="+from)
		synctest.Wait()
		p.mu.Lock()
		if p.events != 0 || p.resumable.String() != from {
			f.Errorf("got %d events and version %d at the start, want no events and version %s", p.events,
				p.resumable, from)
		}
		p.mu.Unlock()
		f.put("a", nil)
		w.want("ADDED a", "BOOKMARK")
		w.wantEnd()
		synctest.Wait()
		if got := recorder.lastReason(); got != watchserver.EndComplete {
			f.Errorf("got reason %q, want %q", got, watchserver.EndComplete)
		}
	})
}

func TestATransportEndsAnIdleStreamCleanly(t *testing.T) {
	onEachPoll(t, asIs, func(f *fixture, c transport.Client, _ *progress) {
		from := f.put("old", nil).ResourceVersion
		f.WatchServer.Timing.Bookmark = -1
		start := time.Now()
		w := f.watch(c, "allowWatchBookmarks=true&resourceVersion="+from)
		if v := w.want("BOOKMARK"); v[0].String() != from {
			f.Errorf("got a last bookmark at %d, want %s", v[0], from)
		}
		w.wantEnd()
		if took := time.Since(start); took != time.Minute {
			f.Errorf("the stream ended after %v, want a minute", took)
		}
	})
}

// A busy stream must notice Finish as well.
func TestFinishEndsABusyStream(t *testing.T) {
	onEachPoll(t, asIs, func(f *fixture, c transport.Client, _ *progress) {
		from := f.put("old", nil).ResourceVersion
		for i := range 500 {
			f.put(fmt.Sprintf("f%03d", i), nil)
		}
		w := f.watch(c, "resourceVersion="+from)
		received := 0
		for {
			e, err := w.Receive()
			if err != nil {
				break
			}
			if !strings.Contains(string(e.Object), "f") {
				f.Fatalf("got %s", e.Object)
			}
			received++
		}
		if received < 1 || received > 200 {
			f.Errorf("got %d events, want the events of a few batches", received)
		}
	})
}
