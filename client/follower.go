package client

import (
	"context"
	"io"
	"net/url"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
)

// Watch sends the first request and returns its error, if any. ctx bounds only that request.
// The Watcher recovers from later failures; the package comment lists the errors that it
// returns.
//
// If the server refuses to send initial events (KEP-3157), the Remote lists the objects instead,
// and the watch begins at the version of the list. The reader sees no difference. For the next
// hour, every Watch of the Remote that needs the state begins with such a list.
//
// A Watch without initial events and with StartNewest or StartAny first lists one object and
// starts at the version of that list, because a watch without a version could not be
// resumed.
//
// If Start is StartAt and the epoch of the server has changed, the error is [listwatch.Expired]. A
// Query does not name an epoch, so the Remote assumes that the version belongs to the newest epoch
// that the server has reported so far.
func (r *Remote) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkQuery(q, true); err != nil {
		return nil, err
	}
	u, err := r.parseURL()
	if err != nil {
		return nil, watchError(err)
	}
	r.init()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := newWatcher(cancel)
	f := newFollower(life, r, q, u, w)
	stop := context.AfterFunc(ctx, cancel)
	err = f.openFirst()
	if !stop() && err == nil {
		_ = f.reflector.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, watchError(err)
	}
	go f.run() // ends after Close of the watcher; Close does not wait for it
	return w, nil
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

// A follower fills the queue of a watcher. Its Reflector opens one response after another: the
// follower is the Reflector's Source and Sink, and decides which failures the reader must
// handle.
type follower struct {
	// Immutable after construction.
	remote  *Remote
	query   listwatch.Query
	url     *url.URL
	watcher *watcher
	ctx     context.Context // ends when the watcher is closed

	// Owned by the caller of Watch, and then by the goroutine of run.
	reflector reflector.Reflector
	// epoch is the epoch of the version to resume from. It is empty if the epoch is not known.
	epoch string
	// response is the newest response. It is nil if the newest request was a list.
	response *response
	// listed holds the initial events from a list. They are delivered once the watch is open.
	listed []listwatch.Event
	// refresh is true if the next request needs fresh credentials.
	refresh bool
	// unproductive is the number of consecutive responses without an event.
	unproductive int
}

func newFollower(ctx context.Context, r *Remote, q listwatch.Query, u *url.URL, w *watcher) *follower {
	f := &follower{remote: r, query: q, url: u, watcher: w, ctx: ctx}
	f.reflector = reflector.Reflector{
		Source: f, Sink: f, Query: q, Start: q.Start, StartVersion: q.Version,
		PageSize: -1, BatchSize: 1, Backoff: r.Backoff, WatchList: &r.state.watchList,
		Policy: reflector.Policy{
			Decide: f.decide, Restart: f.restart, MayRefuseWatchList: mayRefuseWatchList, UncheckedInitialEvents: true,
		},
		Lost: func(err error, wait time.Duration, _ bool) { r.Trace.lost(err, wait) },
	}
	return f
}

// openFirst opens the first response. The reflector opens all later responses.
func (f *follower) openFirst() error {
	switch q := f.query; {
	case q.SendsInitialEvents():
	case q.Start == listwatch.StartAt:
		f.epoch = f.remote.epoch()
		f.reflector.Resume = reflector.ResumePoint{Synced: true, Version: q.Version}
	default:
		// A watch without a start version could not be resumed before its first event, so list
		// one object to learn a version.
		page, err := f.List(f.ctx, listwatch.Query{Namespace: q.Namespace, Name: q.Name, Limit: 1})
		if err != nil {
			return err
		}
		f.reflector.Resume = reflector.ResumePoint{Synced: true, Confirmed: true, Version: page.Version}
	}
	return f.reflector.Open(f.ctx)
}

// run fills the queue until the watcher is closed or a failure occurs that the reader must handle.
func (f *follower) run() {
	err := f.reflector.Run(f.ctx)
	if f.ctx.Err() != nil || isNoContent(err) {
		err = io.EOF
	}
	f.watcher.end(err)
	f.watcher.cancel()
}

// List implements [listwatch.Source].
func (f *follower) List(ctx context.Context, q listwatch.Query) (page listwatch.Page, err error) {
	f.response = nil
	page, f.epoch, err = f.remote.list(ctx, q)
	return page, err
}

// Watch implements [listwatch.Source]. The Watcher that it returns reads a single response. To
// resume, the reflector calls Watch again.
func (f *follower) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	p, from := paramsOf(f.url, q), q.Version
	if q.InitialEvents == listwatch.InitialEventsYes {
		f.epoch, from = "", 0
		p.watchInitial(q)
	} else {
		p.watch(q.Version)
	}
	response, err := f.request(ctx, p)
	if err != nil {
		return nil, err
	}
	f.response = response
	f.remote.Trace.opened(response.candidate.client.Name(), from)
	return response, nil
}

// Describe implements [listwatch.Describer].
func (f *follower) Describe() listwatch.Description { return f.remote.Describe() }

// Begin implements [reflector.Sink]. If the state is requested again, the method restart has
// already emptied the queue of the watcher.
func (f *follower) Begin() { f.listed = nil }

// Take implements [reflector.Sink].
func (f *follower) Take(events []listwatch.Event) error {
	if f.response == nil {
		f.listed = append(f.listed, events...)
		return nil
	}
	for _, e := range events {
		if err := f.deliver(e); err != nil {
			return err
		}
	}
	return nil
}

// deliver puts e into the queue and waits while the queue is full. The idle timer is paused
// during the wait, because nothing is read from the server then.
func (f *follower) deliver(e listwatch.Event) error {
	isBookmark := e.Type == listwatch.Bookmark || e.Type == listwatch.Synced
	if isBookmark && !f.query.Bookmarks || f.watcher.push(e) {
		return nil
	}
	f.response.idle.pause()
	defer f.response.idle.resume()
	select {
	case <-f.watcher.room:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}
