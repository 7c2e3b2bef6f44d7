package client

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

// connections is the Source of single connections; see [Remote.Connect].
type connections struct {
	// Immutable after construction.
	remote         *Remote
	trace          *Trace
	encoding       listwatch.Encoding // of the objects; nil for JSON
	timeoutSeconds string             // if not empty, overrides the parameter in the URL

	mu sync.Mutex
	// Guarded by mu.

	// epoch is the epoch of the version to resume from. It is empty if the epoch is not known.
	epoch string
	// refresh is true if the next request needs fresh credentials.
	refresh bool
	// unproductive is the number of consecutive responses without an event that failed or ended
	// at once.
	unproductive int
}

// Describe implements [listwatch.Describer].
func (c *connections) Describe() listwatch.Description { return c.remote.Describe() }

// Unwrap returns the Remote.
func (c *connections) Unwrap() listwatch.Source { return c.remote }

// Policy returns the policy by which a Reflector recovers from failures; see [reflector.Direct].
func (c *connections) Policy() reflector.Policy {
	return reflector.Policy{
		Decide: c.decide, MayRefuseWatchList: mayRefuseWatchList,
		WatchList: &c.remote.state.watchList, Backoff: c.remote.Backoff, Lost: c.trace.lost,
	}
}

// List implements [listwatch.Source].
func (c *connections) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, epoch, err := c.remote.list(ctx, q)
	if err == nil {
		err = c.checkEpoch("list", epoch, q.Continue == "")
	}
	if err != nil {
		return listwatch.Page{}, err
	}
	return page, nil
}

// Watch implements [listwatch.Source].
func (c *connections) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	err := checkQuery("watch", q)
	if err == nil && !q.SendsInitialEvents() && q.Start != listwatch.StartAt {
		err = &listwatch.Error{
			Code: listwatch.Invalid, Op: "watch", Message: "a watch without initial events needs a version to start at",
		}
	}
	if err != nil {
		return nil, err
	}
	u, err := c.remote.parseURL()
	if err != nil {
		return nil, err
	}
	if !q.Bookmarks {
		q.Since = listwatch.State{} // the reader could not tell a difference from a state
	}
	var resp *response
	err = c.remote.atNamespace(u, q, func(u *url.URL, q listwatch.Query) error {
		resp, err = c.watchAt(ctx, u, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	from := q.Version
	if q.SendsInitialEvents() {
		from = 0
	}
	c.trace.opened(resp.candidate.client.Name(), from)
	return resp, nil
}

// watchAt opens a watch at u, which is the URL of the collection or of its namespace.
func (c *connections) watchAt(ctx context.Context, u *url.URL, q listwatch.Query) (*response, error) {
	p, projection, err := parametersOf(c.remote, u, q, true)
	if err != nil {
		return nil, err
	}
	if c.timeoutSeconds != "" {
		p.Set("timeoutSeconds", c.timeoutSeconds)
	}
	return c.open(ctx, withParameters(u, p), reading{
		initial: q.SendsInitialEvents(), difference: q.Since.Version != 0, projection: projection,
	})
}

// open sends a request for a watch and returns its response. ctx bounds only the request.
func (c *connections) open(ctx context.Context, u *url.URL, start reading) (*response, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	idle := newIdleTimer(c.remote.idle(), cancel)
	resp := &response{connections: c, opened: time.Now(), cancel: cancel, idle: idle, reading: start}
	stop := context.AfterFunc(ctx, cancel)
	err := c.dial(life, resp, u)
	switch {
	case err == nil:
		idle.pause()
		h := resp.receiver.Header()
		c.remote.Trace.responded(h)
		resp.reading.projection = missing(start.projection, h)
		err = c.checkEpoch("watch", h.Get(transport.EpochHeader), start.initial)
	case idle.expired.Load():
		err = errIdle
		if resp.candidate != nil {
			c.remote.state.fallback.demote(resp.candidate) // a proxy may swallow its handshake
		}
	}
	if !stop() {
		err = ctx.Err()
	}
	if err == nil {
		return resp, nil
	}
	_ = resp.Close() // the error of the request matters more
	return nil, err
}

func (c *connections) dial(ctx context.Context, resp *response, u *url.URL) error {
	c.mu.Lock()
	refresh := c.refresh
	c.refresh = false
	c.mu.Unlock()
	r := c.remote
	req := &transport.Request{
		URL: u, Framings: r.Framings, Codings: r.codings(), Limit: r.MaxObjectBytes, Activity: resp.idle.reset,
	}
	return r.authorized(ctx, refresh, func(h http.Header) (err error) {
		req.Header = h
		resp.receiver, resp.candidate, err = r.state.fallback.dial(ctx, req, c.trace)
		return err
	})
}

// checkEpoch returns an error if a response continues from a version of another epoch. If
// startsOver is true, the response sends a new state and does not continue, so there is no error.
// The epoch of the response becomes the epoch of the next version.
func (c *connections) checkEpoch(op, epoch string, startsOver bool) error {
	c.remote.learnEpoch(epoch)
	c.mu.Lock()
	defer c.mu.Unlock()
	// A proxy may have removed the header, so a missing epoch is no error.
	if !startsOver && c.epoch != "" && epoch != "" && c.epoch != epoch {
		return &listwatch.Error{
			Code: listwatch.Expired, Op: op,
			Message: "the versions of the server have started over: its epoch was " + c.epoch + " and is " + epoch,
		}
	}
	if epoch != "" || startsOver {
		c.epoch = epoch
	}
	return nil
}

// ended records why a response has ended. It demotes the transport of the response if that
// transport may be the reason.
func (c *connections) ended(resp *response, err error) {
	if err == error(errIdle) && resp.reading.initial {
		// Some servers silently ignore sendInitialEvents and only wait for changes. So the
		// next attempt sends a list request to get the initial state.
		c.remote.state.watchList.MarkUnsupported()
	}
	received := resp.reading.received
	end := reflector.WatchEnd{Opened: true, Lived: time.Since(resp.opened), Received: received, Err: err}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh = c.refresh || listwatch.CodeOf(err) == listwatch.Unauthorized
	if received > 0 || end.IsClean() && !end.IsBrief() {
		c.unproductive = 0
	} else {
		c.unproductive++
	}
	if resp.reading.malformed || c.unproductive >= maxUnproductive {
		c.unproductive = 0
		c.remote.state.fallback.demote(resp.candidate)
	}
}

// maxUnproductive is the number of consecutive unproductive responses after which a transport is
// demoted.
const maxUnproductive = 2
