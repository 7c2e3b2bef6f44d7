package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/conformance/fault"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A follower is a plan of one logical watcher.
type follower struct {
	name       string
	transports []string
	framing    framing.Framer
	query      listwatch.Query
	byItself   bool // it resumes by itself, stream by stream, each over the next of transports; otherwise client.Remote does
	compress   bool // client.Remote asks for compression; who is by itself asks at random
}

// codings are what streams ask for, most of them for none: the race detector has compressors made anew again and again.
var codings = [][]string{nil, nil, nil, nil, nil, nil, {"gzip"}, {"zstd"}}

var transportNames = []string{"chunked", "h2", "websocket"}

// selections are in the words of listwatch; watchcheck reads them anew.
func selections() []listwatch.Query {
	gold, err := listwatch.ParseLabelSelector("tier=gold")
	noIron, err2 := listwatch.ParseLabelSelector("tier!=iron")
	red, err3 := listwatch.ParseFieldSelector("spec.color=red")
	if err != nil || err2 != nil || err3 != nil {
		panic("selections: a selector is none")
	}
	return []listwatch.Query{{}, {Labels: gold}, {Namespace: "a", Labels: noIron}, {Fields: red}, {Namespace: "b", Name: "n3"}}
}

// followers returns one of each way to follow, and selections in turn.
func followers() []*follower {
	var all []*follower
	queries := selections()
	add := func(f *follower) {
		f.query = queries[len(all)%len(queries)]
		f.query.Bookmarks = true
		all = append(all, f)
	}
	for _, name := range transportNames {
		add(&follower{name: "remote-" + name, transports: []string{name}})
		add(&follower{name: "raw-" + name, transports: []string{name}, byItself: true})
	}
	add(&follower{name: "remote-any", transports: transportNames, compress: true})
	for _, f := range []struct {
		name   string
		framer framing.Framer
	}{{"json", framing.JSON{}}, {"sse", framing.SSE{}}, {"seq", framing.JSONSeq{}}} {
		add(&follower{name: "raw-any-" + f.name, transports: transportNames, framing: f.framer, byItself: true})
	}
	return all
}

// run follows until the goal is reached.
func (f *follower) run(ctx context.Context, w *world, actor uint64) {
	p, err := w.proxy(f.name, actor)
	if err != nil {
		w.complain(err)
		return
	}
	defer p.Close()
	s := f.start(w, p, w.random(actor))
	defer s.remote.Close()
	if err := s.follow(ctx); err != nil {
		w.complain(fmt.Errorf("%s: %w", f.name, err))
	}
}

// start makes what a follower needs.
func (f *follower) start(w *world, p *fault.Proxy, r *rand.Rand) *session {
	s := &session{follower: f, world: w, rand: r, witness: w.rec.Watcher(f.name)}
	s.url = url.URL{Scheme: "http", Host: p.Listener.Addr().String(), Path: "/things"}
	n := transport.Network{Dial: func(ctx context.Context, _, addr string) (net.Conn, error) { return w.network.dial(ctx, addr) }}
	for _, name := range f.transports {
		s.clients = append(s.clients, clientOf(name, n, w.times))
	}
	s.remote = &client.Remote{
		URL: s.url.String(), Network: n, Transports: s.clients, IdleTimeout: w.times.idle, Trace: s.witness.Trace(), Compress: f.compress,
		Backoff: listwatch.Backoff{Min: w.times.pause, Max: 4 * w.times.pause},
	}
	return s
}

func clientOf(name string, n transport.Network, t times) transport.Client {
	switch name {
	case "chunked":
		return &chunked.Client{Network: n}
	case "h2":
		return &h2.Client{Network: n, PingInterval: t.heartbeat}
	}
	return &websocket.Client{Network: n}
}

// A session is a follower at work. It is for one goroutine.
type session struct {
	*follower
	world   *world
	rand    *rand.Rand
	witness *checker.WatcherRecorder
	url     url.URL
	clients []transport.Client
	remote  *client.Remote

	position listwatch.Version // everything up to it has been read; zero: nothing
	streams  int               // how many were opened
}

// done reports whether the goal is reached.
func (s *session) done() bool {
	goal := listwatch.Version(s.world.goal.Load())
	return goal != 0 && s.position >= goal
}

// follow watches, again and again, until the goal is reached or ctx ends.
func (s *session) follow(ctx context.Context) error {
	source := s.witness.Source(s.remote, s.name)
	for !s.done() {
		if ctx.Err() != nil {
			return fmt.Errorf("came no further than version %d: %w", s.position, ctx.Err())
		}
		err := s.once(ctx, source)
		switch code := listwatch.CodeOf(err); {
		case err == nil:
		case code == listwatch.Expired:
			s.position = 0
		case code != listwatch.Unavailable && !s.byItself && !isEnd(err) && ctx.Err() == nil:
			return fmt.Errorf("a Remote let its reader see what it should mend: %w", err)
		}
		if !s.done() {
			rest(ctx, s.rand, s.world.times.pause)
		}
	}
	return nil
}

// once is one watch. Where nothing is known it begins with the state, or with a list and what follows that.
func (s *session) once(ctx context.Context, source listwatch.Source) error {
	q := s.query
	if s.position == 0 && s.rand.IntN(3) == 0 {
		page, err := source.List(ctx, q)
		if err != nil {
			return nil // lists are tried again by whoever asks
		}
		s.position = page.Version
	}
	if s.position != 0 {
		q.Start, q.Version = listwatch.At, s.position
	} else if s.rand.IntN(4) == 0 {
		q.Start = listwatch.Any
	}
	if s.byItself {
		return s.stream(ctx, q)
	}
	return s.watch(ctx, source, q)
}

// watch reads a Watcher.
func (s *session) watch(ctx context.Context, source listwatch.Source, q listwatch.Query) error {
	w, err := source.Watch(ctx, q)
	if err != nil {
		return err
	}
	defer w.Close()
	var batch [32]listwatch.Event
	for {
		n, err := w.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			s.take(e)
		}
		if err != nil || s.done() {
			return err
		}
	}
}

// take moves the position on. Initial events have none: their versions are in no order.
func (s *session) take(e listwatch.Event) {
	if !e.Initial {
		s.position = max(s.position, e.Version)
	}
}
