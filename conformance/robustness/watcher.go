package robustness

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// A watcherConfig describes one watcher of the cluster.
type watcherConfig struct {
	name       string
	transports []string
	framing    framing.Framer
	query      listwatch.Query
	// raw means that the watcher uses the transport clients directly, without client.Remote.
	raw bool
	// compress makes client.Remote request compression. A raw watcher ignores this field, and
	// chooses from codings at random.
	compress bool
}

// codings lists the content codings from which a raw watcher chooses. Most streams are
// uncompressed, because compressors are slow under the race detector.
var codings = [][]string{nil, nil, nil, nil, nil, nil, {"gzip"}, {"zstd"}}

var transportNames = []string{"chunked", "h2", "websocket"}

// selections returns the queries that watchers use.
func selections() []listwatch.Query {
	gold, err := listwatch.ParseLabelSelector("tier=gold")
	noIron, err2 := listwatch.ParseLabelSelector("tier!=iron")
	red, err3 := listwatch.ParseFieldSelector("spec.color=red")
	if err != nil || err2 != nil || err3 != nil {
		panic("selections: invalid selector")
	}
	return []listwatch.Query{
		{},
		{Selection: listwatch.Selection{Labels: gold}},
		{Selection: listwatch.Selection{Namespace: "a", Labels: noIron}},
		{Selection: listwatch.Selection{Fields: red}},
		{Selection: listwatch.Selection{Namespace: "b", Name: "n3"}},
	}
}

// watcherConfigs returns one watcher of each kind, with alternating selections.
func watcherConfigs() []*watcherConfig {
	var all []*watcherConfig
	queries := selections()
	add := func(f *watcherConfig) {
		f.query = queries[len(all)%len(queries)]
		f.query.Bookmarks = true
		all = append(all, f)
	}
	for _, name := range transportNames {
		add(&watcherConfig{name: "remote-" + name, transports: []string{name}})
		add(&watcherConfig{name: "raw-" + name, transports: []string{name}, raw: true})
	}
	add(&watcherConfig{name: "remote-any", transports: transportNames, compress: true})
	for _, f := range []struct {
		name   string
		framer framing.Framer
	}{{"json", framing.JSON{}}, {"sse", framing.SSE{}}, {"seq", framing.JSONSeq{}}} {
		add(&watcherConfig{name: "raw-any-" + f.name, transports: transportNames, framing: f.framer, raw: true})
	}
	return all
}

// run watches until the watcher has reached c.targetVersion, the version of the last write.
func (w *watcherConfig) run(ctx context.Context, c *cluster, actor uint64) {
	p, err := c.startProxy(w.name, actor)
	if err != nil {
		c.reportFailure(err)
		return
	}
	defer p.Close()
	watcher := w.newWatcher(c, p, c.random(actor))
	defer watcher.remote.Close()
	if err := watcher.watchUntilTarget(ctx); err != nil {
		c.reportFailure(fmt.Errorf("%s: %w", w.name, err))
	}
}

// newWatcher connects a watcher to the cluster through p.
func (w *watcherConfig) newWatcher(c *cluster, p *fault.Proxy, r *rand.Rand) *watcher {
	created := &watcher{watcherConfig: w, cluster: c, rand: r, recorder: c.recorder.Watcher(w.name)}
	created.url = url.URL{Scheme: "http", Host: p.Listener.Addr().String(), Path: "/things"}
	n := transport.Network{
		Dial: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.network.dial(ctx, addr) },
	}
	for _, name := range w.transports {
		created.clients = append(created.clients, newClient(name, n, c.timings))
	}
	created.remote = &client.Remote{
		URL: created.url.String(), Network: n, Transports: created.clients, IdleTimeout: c.timings.idleTimeout,
		Trace: created.recorder.Trace(), Compress: w.compress,
		Backoff: listwatch.Backoff{Min: c.timings.pause, Max: 4 * c.timings.pause},
	}
	return created
}

func newClient(name string, n transport.Network, t timings) transport.Client {
	switch name {
	case "chunked":
		return &chunked.Client{Network: n}
	case "h2":
		return &h2.Client{Network: n, PingInterval: t.heartbeatInterval}
	}
	return &websocket.Client{Network: n}
}

// A watcher watches as a watcherConfig describes. It is not safe for concurrent use.
type watcher struct {
	*watcherConfig
	cluster  *cluster
	rand     *rand.Rand
	recorder *checker.WatcherRecorder
	url      url.URL
	clients  []transport.Client
	remote   *client.Remote

	// position is the version up to which the watcher has read everything, or zero if it has read
	// nothing.
	position listwatch.Version
	// has is the state that the watcher has received. seen is the newest version of an event that
	// it has received. Both keep their values when the position expires.
	has  listwatch.State
	seen listwatch.Version
	// streamCount is the number of calls of readStream so far. Each call uses the next client.
	streamCount int
}

// reachedTarget reports whether the target version is known and reached.
func (w *watcher) reachedTarget() bool {
	target := listwatch.Version(w.cluster.targetVersion.Load())
	return target != 0 && w.position >= target
}

// watchUntilTarget starts watches until the target version is reached or ctx ends.
func (w *watcher) watchUntilTarget(ctx context.Context) error {
	source := w.recorder.Source(w.remote, w.name)
	for !w.reachedTarget() {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped at version %d: %w", w.position, ctx.Err())
		}
		err := w.watchOnce(ctx, source)
		switch code := listwatch.CodeOf(err); {
		case err == nil:
		case code == listwatch.Expired:
			w.position = 0
		case code != listwatch.Unavailable && !w.raw && !isCleanEnd(err) && ctx.Err() == nil:
			return fmt.Errorf("the Remote returned an error instead of retrying: %w", err)
		}
		if !w.reachedTarget() {
			sleepRandom(ctx, w.rand, w.cluster.timings.pause)
		}
	}
	return nil
}

// watchOnce starts one watch and reads it to its end. If w.position is zero, watchOnce requests
// initial events, or sends a list request before the watch.
func (w *watcher) watchOnce(ctx context.Context, source listwatch.Source) error {
	q := w.query
	if w.position == 0 && w.has.ID != "" && !w.raw && w.rand.IntN(2) == 0 {
		q.Start, q.Version, q.InitialEvents, q.Since = listwatch.StartAt, w.seen, listwatch.InitialEventsYes, w.has
		return w.readWatcher(ctx, source, q)
	}
	if w.position == 0 && w.rand.IntN(3) == 0 {
		page, err := source.List(ctx, q)
		if err != nil {
			return nil // watchUntilTarget tries again
		}
		w.position = page.Version
	}
	if w.position != 0 {
		q.Start, q.Version = listwatch.StartAt, w.position
	} else if w.rand.IntN(4) == 0 {
		q.Start = listwatch.StartAny
	}
	if w.raw {
		return w.readStream(ctx, q)
	}
	return w.readWatcher(ctx, source, q)
}

// readWatcher reads a listwatch.Watcher to its end.
func (w *watcher) readWatcher(ctx context.Context, source listwatch.Source, q listwatch.Query) error {
	events, err := source.Watch(ctx, q)
	if err != nil {
		return err
	}
	defer events.Close()
	var batch [32]listwatch.Event
	for {
		n, err := events.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			w.advance(e)
		}
		if err != nil || w.reachedTarget() {
			return err
		}
	}
}

// advance updates the position. It ignores initial events, because their versions are in no
// order.
func (w *watcher) advance(e listwatch.Event) {
	if e.Initial {
		return
	}
	w.position = max(w.position, e.Version)
	switch state := e.State(); {
	case state.ID != "":
		w.has, w.seen = state, max(w.seen, e.Version)
	case e.Version > w.seen: // a later event may have the same version
		w.has.Version, w.seen = w.seen, e.Version
	}
}

// isCleanEnd reports whether err is a clean end of a stream.
func isCleanEnd(err error) bool { return errors.Is(err, io.EOF) }
