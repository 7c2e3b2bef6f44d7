package relay

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// A prober helps the relay on where readers wait for a version that no event brings, because it was written to another collection of the
// upstream's database. It watches a second time for a moment, from where the relay is: once a bookmark has come and the relay has
// had all that came before, there is nothing up to the bookmark that the relay has not had. Safe for concurrent use.
type prober struct {
	// Immutable after construction.
	ctx      context.Context
	tasks    *tasks
	upstream *upstream
	source   listwatch.Source // nil: there is none to watch
	release  func()           // once nothing is probed any more

	mu sync.Mutex
	// Guarded by mu.
	wanted  wanted
	running bool
}

// wanted is a version that somebody waits for.
type wanted struct {
	generation *generation
	version    listwatch.Version
	until      time.Time
}

// grace is how long an event that is on its way may take: nobody is asked before.
const grace = 50 * time.Millisecond

// probeTime is how long watches of a probe last: servers send a bookmark two seconds before their time is up, as kube-apiserver does.
const probeTime = 3 * time.Second

// probeBy makes p probe by given, or, where that is nil, by what it can make of upstream.
func (p *prober) probeBy(upstream, given listwatch.Source) {
	p.source, p.release = given, func() {}
	remote, ok := upstream.(*client.Remote)
	if given != nil || !ok {
		return
	}
	u, err := url.Parse(remote.URL)
	if err != nil {
		return // the Remote says so itself
	}
	q := u.Query()
	q.Set("timeoutSeconds", "3")
	u.RawQuery = q.Encode()
	probe := &client.Remote{
		URL: u.String(), Network: remote.Network, Transports: remote.Transports, HTTPClient: remote.HTTPClient, Header: remote.Header,
		Framings: remote.Framings, Compress: remote.Compress, MaxObjectBytes: remote.MaxObjectBytes, MaxListBytes: remote.MaxListBytes, IdleTimeout: remote.IdleTimeout,
	}
	p.source, p.release = probe, func() { _ = probe.Close() } // it never fails
}

// want says that somebody waits for g to reach v.
func (p *prober) want(g *generation, v listwatch.Version) {
	if g.head.Version() >= v {
		return
	}
	p.upstream.nudge()
	if p.source == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted.generation != g || p.wanted.version < v {
		p.wanted.generation, p.wanted.version = g, v
	}
	p.wanted.until = time.Now().Add(patience)
	if !p.running {
		p.running = p.tasks.start(p.run)
	}
}

// open returns what is wanted now; false: nothing is, and the caller must end.
func (p *prober) open() (wanted, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.wanted
	if w.generation.isOver() || w.generation.head.Version() >= w.version || !time.Now().Before(w.until) || p.ctx.Err() != nil {
		p.wanted, p.running = wanted{}, false
		return w, false
	}
	return w, true
}

func (p *prober) run() {
	for {
		w, ok := p.open()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(p.ctx, grace)
		err := w.generation.head.Wait(ctx, w.version)
		cancel()
		if err == nil {
			continue
		}
		p.probe(w)
	}
}

// probe watches once, until w is reached or its time is up. Whatever goes wrong shows to those who wait, as time that has run out.
func (p *prober) probe(w wanted) {
	g := w.generation
	ctx, cancel := context.WithTimeout(g.ctx, probeTime+patience)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	from := g.head.Version()
	watcher, err := p.source.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: from, InitialEvents: listwatch.No, Bookmarks: true})
	if err == nil {
		defer watcher.Close()
		err = p.read(ctx, w, watcher, from)
	}
	if err != nil {
		select { // lest a failure be tried again at once
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
}

// read moves the head of w's generation on with the bookmarks of watcher, which began after version seen.
func (p *prober) read(ctx context.Context, w wanted, watcher listwatch.Watcher, seen listwatch.Version) error {
	g := w.generation
	for e, err := range listwatch.All(ctx, watcher) {
		if err != nil {
			return err
		}
		if e.Type != listwatch.Bookmark {
			seen = e.Version
			continue
		}
		if epoch := annotatedEpoch(e); epoch != g.description.Epoch && epoch != "" && g.description.Epoch != "" {
			return anotherEpoch(g.description.Epoch, epoch)
		}
		// The relay's own watch brings what this one has brought.
		if err := g.head.Wait(ctx, seen); err != nil {
			return err
		}
		g.head.Advance(e.Version)
		if e.Version >= w.version {
			return nil
		}
	}
	return ctx.Err()
}
