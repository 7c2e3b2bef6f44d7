package etcdcluster

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

// A follower is one watcher. It is for one goroutine.
type follower struct {
	// Immutable while it runs.
	name    string
	query   listwatch.Query
	remotes []*client.Remote // it takes another one for each session
	session time.Duration    // about how long that lasts
	pause   time.Duration    // about how long it rests between two
	rand    *rand.Rand
	witness *checker.WatcherRecorder
	goal    *atomic.Uint64 // the version that watchers are to reach; zero: not known yet
	moves   *atomic.Int64  // counts sessions that go on at another server

	position listwatch.Version // everything up to it has been read; zero: nothing
	at       int               // the remote of the last session
}

// followers returns watchers over each transport, for each selection: those that go to another server themselves, those that whatever they dial
// brings to any, and one that stays away for long.
func (l *lane) followers() []*follower {
	gold, err := listwatch.ParseLabelSelector("tier=gold")
	noIron, err2 := listwatch.ParseLabelSelector("tier!=iron")
	red, err3 := listwatch.ParseFieldSelector("spec.color=red")
	if err := errors.Join(err, err2, err3); err != nil {
		l.Fatal(err)
	}
	queries := []listwatch.Query{{}, {Labels: gold}, {Namespace: "a"}, {Labels: noIron}, {Namespace: "b", Fields: red}}
	var all []*follower
	add := func(name string, session, pause time.Duration, servers ...*server) {
		f := &follower{
			name: name, query: queries[len(all)%len(queries)], session: session, pause: pause, rand: l.random(uint64(100 + len(all))),
			witness: l.rec.Watcher(name), goal: &l.goal, moves: &l.moves,
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
	for _, name := range []string{"moves-1", "moves-2", "moves-3"} {
		add(name, time.Second, 20*time.Millisecond)
	}
	for _, name := range []string{"balanced-1", "balanced-2", "balanced-3"} {
		add(name, time.Hour, 20*time.Millisecond, l.servers...)
	}
	add("stays-1", time.Hour, 20*time.Millisecond, l.servers[0])
	add("stays-2", time.Hour, 20*time.Millisecond, l.servers[1])
	add("late", 300*time.Millisecond, 6*time.Second)
	return all
}

// remote returns servers as f sees them: each connection goes to any of them.
func (l *lane) remote(f *follower, over string, servers ...*server) *client.Remote {
	r := l.random(uint64(1000 + len(l.dialed)))
	n := transport.Network{}
	if len(servers) > 1 {
		turn := new(atomic.Int64)
		turn.Store(int64(r.IntN(len(servers))))
		n.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, servers[int(turn.Add(1))%len(servers)].front)
		}
	}
	t := transport.Client(&websocket.Client{Network: n})
	switch over {
	case "chunked":
		t = &chunked.Client{Network: n}
	case "h2":
		t = &h2.Client{Network: n, PingInterval: heartbeat}
	}
	remote := &client.Remote{
		URL: "http://" + servers[0].front + path, Network: n, Transports: []transport.Client{t}, IdleTimeout: idleTime, Trace: f.witness.Trace(),
		Backoff: listwatch.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond},
	}
	l.dialed = append(l.dialed, remote)
	return remote
}

func (f *follower) done() bool {
	goal := listwatch.Version(f.goal.Load())
	return goal != 0 && f.position >= goal
}

// run follows until the goal is reached, or ctx ends.
func (f *follower) run(ctx context.Context, complain func(format string, args ...any)) {
	for !f.done() {
		if ctx.Err() != nil {
			complain("%s came no further than version %d: %v", f.name, f.position, ctx.Err())
			return
		}
		err := f.once(ctx)
		switch code := listwatch.CodeOf(err); {
		case err == nil, errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
		case code == listwatch.Expired:
			f.position = 0
		case code != listwatch.Unavailable && code != listwatch.NotYet && code != listwatch.TooSlow && ctx.Err() == nil:
			complain("%s: %v", f.name, err)
			return
		}
		pause := f.pause
		if f.goal.Load() != 0 {
			pause = min(pause, 100*time.Millisecond)
		}
		rest(ctx, f.rand, pause)
	}
}

// grace is how long a session that is to end waits for a bookmark.
const grace = 5 * time.Second

// once is one session, at another server than the last one where there is a choice.
func (f *follower) once(ctx context.Context) error {
	if n := len(f.remotes); n > 1 {
		f.at = (f.at + 1 + f.rand.IntN(n-1)) % n
	}
	over := time.Now().Add(f.session/2 + time.Duration(f.rand.Int64N(int64(f.session))))
	ctx, cancel := context.WithDeadline(ctx, over.Add(grace))
	defer cancel()
	source := f.witness.Source(f.remotes[f.at], f.name)
	q := f.query
	if f.position == 0 && f.rand.IntN(3) == 0 {
		page, err := source.List(ctx, q)
		if err != nil {
			return err
		}
		f.position = page.Version
	}
	switch {
	case f.position != 0:
		q.Start, q.Version = listwatch.At, f.position
		if len(f.remotes) > 1 {
			f.moves.Add(1)
		}
	case f.rand.IntN(4) == 0:
		q.Start = listwatch.Any
	}
	w, err := source.Watch(ctx, q)
	if err != nil {
		return err
	}
	defer w.Close()
	return f.follow(ctx, w, over)
}

// follow reads w until it is time for the next session.
func (f *follower) follow(ctx context.Context, w listwatch.Watcher, over time.Time) error {
	var batch [32]listwatch.Event
	whole := true // nothing of the version that was read last can be missing
	for {
		n, err := w.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			if !e.Initial { // those have their versions in no order
				f.position = max(f.position, e.Version)
				whole = e.Type == listwatch.Bookmark || e.Type == listwatch.Synced
			}
		}
		switch {
		case f.done():
			return nil
		case err != nil && !whole:
			// The last event may be in the middle of a transaction, the rest of which a watch that resumes from its version would not have.
			f.position = 0
			return err
		case err != nil || whole && time.Now().After(over):
			return err
		}
	}
}
