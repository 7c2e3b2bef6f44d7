package client

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A response is a [listwatch.Watcher] that reads the response to one watch request. It does not
// resume.
type response struct {
	// Immutable after construction.
	follower  *follower
	receiver  transport.Receiver
	candidate *candidate
	cancel    context.CancelFunc
	idle      *idleTimer

	// received is the number of frames received.
	received int
	// malformed is true if the server violated the protocol of the transport or of the framing.
	malformed bool
}

// request sends a request with the parameters p and returns its response, which ends when ctx
// does.
func (f *follower) request(ctx context.Context, p params) (*response, error) {
	r := f.remote
	ctx, cancel := context.WithCancel(ctx)
	resp := &response{follower: f, cancel: cancel, idle: newIdleTimer(r.idle(), cancel)}
	req := &transport.Request{URL: p.url(f.url), Framings: r.Framings, Codings: r.codings(), Limit: r.limit(), Activity: resp.idle.reset}
	err := r.authorized(ctx, f.refresh, func(h http.Header) (err error) {
		req.Header = h
		resp.receiver, resp.candidate, err = r.state.fallback.dial(ctx, req, r.Trace)
		return err
	})
	f.refresh = false
	if err == nil {
		err = f.checkEpoch(resp.receiver.Header())
	}
	if err != nil {
		_ = resp.Close()
		if resp.idle.expired.Load() {
			err = errIdle
		}
		return nil, err
	}
	return resp, nil
}

// checkEpoch returns an error if the epoch in the header h is not the epoch of the version to
// resume from.
func (f *follower) checkEpoch(h http.Header) error {
	epoch, before := h.Get(transport.EpochHeader), f.epoch
	if epoch == "" {
		return nil // a proxy may have removed the header, so this is no error
	}
	f.remote.learnEpoch(epoch)
	f.epoch = epoch
	if before == "" || before == epoch {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Expired, Op: "watch", Message: "the versions of the server have started over: its epoch was " + before + " and is " + epoch,
	}
}

// Next implements [listwatch.Watcher]. It returns one event per call.
func (resp *response) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	f := resp.follower
	if listed := f.listed; listed != nil {
		f.listed = nil
		if err := f.Take(listed); err != nil {
			return 0, err
		}
	}
	frame, err := resp.receive()
	if err != nil {
		return 0, err
	}
	e, err := frame.TrustedEvent()
	if err != nil {
		return 0, err
	}
	f.remote.learnFrom(e.Object)
	if e.Type == listwatch.Bookmark && !f.reflector.Resume.Synced {
		// Some servers do not mark the end of the initial events. Their first bookmark follows
		// the initial events, so treat it as Synced.
		e = listwatch.NewBookmark(listwatch.Describe(f.remote), e.Version, true)
	}
	dst[0] = e
	return 1, nil
}

func (resp *response) receive() (framing.WatchEvent, error) {
	frame, err := resp.receiver.Receive()
	switch {
	case err == nil:
		resp.received++
	case resp.idle.expired.Load():
		return frame, errIdle
	case listwatch.CodeOf(err) == listwatch.Corrupt:
		resp.malformed = true
	}
	return frame, err
}

// Close implements [listwatch.Watcher].
func (resp *response) Close() error {
	resp.idle.stop()
	if resp.receiver != nil {
		_ = resp.receiver.Close() // the response is no longer read, so an error does not matter
	}
	resp.cancel()
	return nil
}
