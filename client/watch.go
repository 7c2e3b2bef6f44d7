package client

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

// Watch opens a stream, and returns what the server or the network refuses; ctx bounds that. Later ends of the stream are the
// Watcher's to mend: see the package comment.
//
// Initial events are asked for as such. A server that refuses that is listed instead and then watched, which looks the same, and is not
// asked again for an hour. Changes from now on, a Start of Newest or Any with InitialEvents No, are those after the version of a list of
// one object: a watch whose start is not known could not be resumed.
//
// A Start At a version of another epoch than the server's is Expired. The epoch of the version is taken to be the one that the Remote
// saw last.
func (r *Remote) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkQuery(q, true); err != nil {
		return nil, err
	}
	u, err := r.target()
	if err != nil {
		return nil, watchError(err)
	}
	r.init()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &follower{remote: r, query: q, url: u, out: newWatcher(cancel)}
	stop := context.AfterFunc(ctx, cancel)
	s, err := f.begin(life)
	if !stop() && err == nil {
		s.close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, watchError(err)
	}
	go f.run(life, s) // ends after Close of the watcher, which doesn't wait for it
	return f.out, nil
}

func watchError(err error) error {
	e := listwatch.AsError(err)
	if e.Op == "" {
		c := *e
		c.Op = "watch"
		return &c
	}
	return e
}

// begin opens the watch from where the query says.
func (f *follower) begin(ctx context.Context) (*stream, error) {
	f.epoch, f.progress = "", reflector.Progress{}
	switch q := f.query; {
	case !q.SendsInitialEvents() && q.Start == listwatch.At:
		f.epoch, f.progress.Version = f.remote.epoch(), q.Version
		return f.resume(ctx)
	case !q.SendsInitialEvents():
		return f.beginNow(ctx)
	}
	f.progress.Initial = true
	if f.remote.isPlain() {
		return f.listFirst(ctx)
	}
	p := paramsOf(f.url, f.query)
	p.watchInitial(f.query)
	s, err := f.open(ctx, p)
	if !refusesInitialEvents(err) {
		return s, err
	}
	if s, err = f.listFirst(ctx); err == nil {
		f.remote.learnPlain()
	}
	return s, err
}

// refusesInitialEvents reports whether err may mean that the server doesn't know sendInitialEvents. If it means something else that
// the server doesn't like, a list will tell.
func refusesInitialEvents(err error) bool {
	e := listwatch.AsError(err)
	return e != nil && e.Remote && (e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusBadRequest)
}

// beginNow opens a watch of the changes from now on.
func (f *follower) beginNow(ctx context.Context) (*stream, error) {
	page, epoch, err := f.remote.list(ctx, listwatch.Query{Namespace: f.query.Namespace, Name: f.query.Name, Limit: 1})
	if err != nil {
		return nil, err
	}
	f.epoch, f.progress = epoch, reflector.Progress{Version: page.Version, Proven: true}
	return f.resume(ctx)
}

// listFirst gets the state by a list, for the goroutine to deliver, and opens a watch of what follows. Once the list is there f is past
// the initial events, also where the watch can't be opened: then that is to be resumed.
func (f *follower) listFirst(ctx context.Context) (*stream, error) {
	q := f.query
	q.Limit, q.Match = 0, listwatch.NotOlderThan
	page, epoch, err := f.remote.list(ctx, q)
	items := page.Items
	for err == nil && page.Continue != "" {
		// A server may make pages though none were asked for.
		q.Start, q.Version, q.Continue = listwatch.Newest, 0, page.Continue
		page, epoch, err = f.remote.list(ctx, q)
		items = slices.Concat(items, page.Items)
	}
	if err != nil {
		return nil, err
	}
	f.epoch, f.progress = epoch, reflector.Progress{Version: page.Version, Proven: true}
	f.state = make([]listwatch.Event, 0, len(items)+1)
	for _, o := range items {
		f.state = append(f.state, listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version})
	}
	if f.query.Bookmarks {
		f.state = append(f.state, listwatch.NewBookmark(listwatch.Describe(f.remote), page.Version, true))
	}
	return f.resume(ctx)
}

// resume opens the watch from the version it has come to.
func (f *follower) resume(ctx context.Context) (*stream, error) {
	p := paramsOf(f.url, f.query)
	p.watch(f.progress.Version)
	return f.open(ctx, p)
}

// A stream is one of those that a watcher reads, one after another.
type stream struct {
	receiver transport.Receiver
	rung     *rung
	cancel   context.CancelFunc
	idle     *watchdog
	opened   time.Time

	received int  // how many frames
	broken   bool // what came was not the transport's protocol, or not the framing's
}

func (f *follower) open(ctx context.Context, p params) (*stream, error) {
	r := f.remote
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{cancel: cancel, idle: newWatchdog(r.idle(), cancel)}
	req := &transport.Request{URL: p.in(f.url), Framings: r.Framings, Codings: r.codings(), Limit: r.limit(), Activity: s.idle.touch}
	err := r.authorized(ctx, f.retry.refresh, func(h http.Header) (err error) {
		req.Header = h
		s.receiver, s.rung, err = r.state.ladder.dial(ctx, req, r.Trace)
		return err
	})
	f.retry.refresh = false
	if err == nil {
		err = f.checkEpoch(s.receiver.Header())
	}
	if err != nil {
		s.close()
		if s.idle.fired.Load() {
			return nil, errIdle
		}
		return nil, err
	}
	s.opened = time.Now()
	from := f.progress.Version
	if f.progress.Initial {
		from = 0
	}
	r.Trace.opened(s.rung.client.Name(), from)
	return s, nil
}

// checkEpoch returns an error where the versions of the server are not those that f knows.
func (f *follower) checkEpoch(h http.Header) error {
	epoch, was := h.Get(transport.EpochHeader), f.epoch
	if epoch == "" {
		return nil // a proxy may have dropped it: this tells nothing
	}
	f.remote.learnEpoch(epoch)
	f.epoch = epoch
	if was == "" || was == epoch {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "watch", Message: "the server's versions have begun anew: its epoch was " + was + " and is " + epoch,
	}
}

// receive returns the next frame.
func (s *stream) receive() (framing.WatchEvent, error) {
	e, err := s.receiver.Receive()
	switch {
	case err == nil:
		s.received++
	case s.idle.fired.Load():
		return e, errIdle
	case listwatch.CodeOf(err) == listwatch.Corrupt:
		s.broken = true
	}
	return e, err
}

// lived returns how long s has been open.
func (s *stream) lived() time.Duration { return time.Since(s.opened) }

// close ends s; it may have failed to open.
func (s *stream) close() {
	s.idle.stop()
	if s.receiver != nil {
		s.receiver.Close()
	}
	s.cancel()
}
