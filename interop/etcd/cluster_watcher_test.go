package etcd

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A switchingWatcher watches in sessions. Each session resumes where the last one ended, possibly
// at another server. A switchingWatcher must be used by one goroutine only.
type switchingWatcher struct {
	// Immutable after construction.
	name        string
	query       listwatch.Query
	remotes     []*client.Remote // successive sessions use different remotes
	sessionTime time.Duration    // the average duration of a session
	pauseTime   time.Duration    // the maximum pause between two sessions
	rand        *rand.Rand
	recorder    *checker.WatcherRecorder
	target      *atomic.Uint64 // the version that watchers must reach, or 0 if not known yet
	switches    *atomic.Int64  // counts the sessions that resume at another server

	position listwatch.Version // all events up to this version have been read; 0 at the start
	current  int               // the index of the remote of the last session
}

// newWatchers returns watchers that together cover each transport and each selection. Some choose
// another server for each session, some connect through a load balancer, some always use the same
// server, and one pauses for a long time.
func (l *clusterTest) newWatchers() []*switchingWatcher {
	gold, err := listwatch.ParseLabelSelector("tier=gold")
	noIron, err2 := listwatch.ParseLabelSelector("tier!=iron")
	red, err3 := listwatch.ParseFieldSelector("spec.color=red")
	if err := errors.Join(err, err2, err3); err != nil {
		l.Fatal(err)
	}
	queries := []listwatch.Query{
		{},
		{Selection: listwatch.Selection{Labels: gold}},
		{Selection: listwatch.Selection{Namespace: "a"}},
		{Selection: listwatch.Selection{Labels: noIron}},
		{Selection: listwatch.Selection{Namespace: "b", Fields: red}},
	}
	var all []*switchingWatcher
	add := func(name string, session, pause time.Duration, servers ...*serverProcess) {
		f := &switchingWatcher{
			name: name, query: queries[len(all)%len(queries)], sessionTime: session, pauseTime: pause,
			rand:     l.random(uint64(100 + len(all))),
			recorder: l.recorder.Watcher(name), target: &l.target, switches: &l.switches,
		}
		f.query.Bookmarks = true
		over := [...]string{"chunked", "h2", "websocket"}[len(all)%3]
		if len(servers) > 0 {
			f.remotes = []*client.Remote{l.remote(f, over, servers...)}
		} else {
			for _, s := range l.servers {
				f.remotes = append(f.remotes, l.remote(f, over, s))
			}
		}
		all = append(all, f)
	}
	for _, name := range []string{"switching-1", "switching-2", "switching-3"} {
		add(name, time.Second, 20*time.Millisecond)
	}
	for _, name := range []string{"balanced-1", "balanced-2", "balanced-3"} {
		add(name, time.Hour, 20*time.Millisecond, l.servers...)
	}
	add("fixed-1", time.Hour, 20*time.Millisecond, l.servers[0])
	add("fixed-2", time.Hour, 20*time.Millisecond, l.servers[1])
	add("pausing", 300*time.Millisecond, 6*time.Second)
	return all
}

// remote returns a client for f. If there are several servers, the client connects to them in turn,
// as through a load balancer.
func (l *clusterTest) remote(f *switchingWatcher, over string, servers ...*serverProcess) *client.Remote {
	r := l.random(uint64(1000 + len(l.remotes)))
	n := transport.Network{}
	if len(servers) > 1 {
		next := new(atomic.Int64)
		next.Store(int64(r.IntN(len(servers))))
		n.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, servers[int(next.Add(1))%len(servers)].clientAddr)
		}
	}
	t := transport.Client(&websocket.Client{Network: n})
	switch over {
	case "chunked":
		t = &chunked.Client{Network: n}
	case "h2":
		t = &h2.Client{Network: n, PingInterval: heartbeatInterval}
	}
	remote := &client.Remote{
		URL: "http://" + servers[0].clientAddr + collectionPath, Network: n, Transports: []transport.Client{t},
		IdleTimeout: idleTimeout, Trace: f.recorder.Trace(),
		Backoff: listwatch.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond},
	}
	l.remotes = append(l.remotes, remote)
	return remote
}

func (s *switchingWatcher) done() bool {
	goal := listwatch.Version(s.target.Load())
	return goal != 0 && s.position >= goal
}

// run watches until the target is reached or ctx ends.
func (s *switchingWatcher) run(ctx context.Context, report func(format string, args ...any)) {
	for !s.done() {
		if ctx.Err() != nil {
			report("watcher %s stopped at version %d: %v", s.name, s.position, ctx.Err())
			return
		}
		err := s.session(ctx)
		switch code := listwatch.CodeOf(err); {
		case err == nil, errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
		case code == listwatch.Expired:
			s.position = 0
		case code != listwatch.Unavailable && code != listwatch.NotYet && code != listwatch.TooSlow && ctx.Err() == nil:
			report("watcher %s: %v", s.name, err)
			return
		}
		pause := s.pauseTime
		if s.target.Load() != 0 {
			pause = min(pause, 100*time.Millisecond)
		}
		sleepRandomly(ctx, s.rand, pause)
	}
}

// bookmarkWait limits the time that a session waits for a bookmark after the planned end of the
// session.
const bookmarkWait = 5 * time.Second

// session runs one session. If s has several remotes, the session uses a different remote than the
// session before.
func (s *switchingWatcher) session(ctx context.Context) error {
	if n := len(s.remotes); n > 1 {
		s.current = (s.current + 1 + s.rand.IntN(n-1)) % n
	}
	end := time.Now().Add(s.sessionTime/2 + time.Duration(s.rand.Int64N(int64(s.sessionTime))))
	ctx, cancel := context.WithDeadline(ctx, end.Add(bookmarkWait))
	defer cancel()
	source := s.recorder.Source(s.remotes[s.current], s.name)
	q := s.query
	if s.position == 0 && s.rand.IntN(3) == 0 {
		page, err := source.List(ctx, q)
		if err != nil {
			return err
		}
		s.position = page.Version
	}
	switch {
	case s.position != 0:
		q.Start, q.Version = listwatch.StartAt, s.position
		if len(s.remotes) > 1 {
			s.switches.Add(1)
		}
	case s.rand.IntN(4) == 0:
		q.Start = listwatch.StartAny
	}
	w, err := source.Watch(ctx, q)
	if err != nil {
		return err
	}
	defer w.Close()
	return s.read(ctx, w, end)
}

// read reads w until the end of the session.
func (s *switchingWatcher) read(ctx context.Context, w listwatch.Watcher, end time.Time) error {
	var batch [32]listwatch.Event
	complete := true // whether all events of the last version have been read
	for {
		n, err := w.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			if !e.Initial { // the versions of initial events are not ordered
				s.position = max(s.position, e.Version)
				complete = e.Type == listwatch.Bookmark || e.Type == listwatch.Synced
			}
		}
		switch {
		case s.done():
			return nil
		case err != nil && !complete:
			// The transaction of the last event may have more events. A watch that resumes at the
			// version of the last event would not return them, so the next session starts over.
			s.position = 0
			return err
		case err != nil || complete && time.Now().After(end):
			return err
		}
	}
}
