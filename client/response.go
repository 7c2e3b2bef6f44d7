package client

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A response is the response to one watch request, as a [listwatch.Watcher] that does not resume.
type response struct {
	// Immutable after construction.
	follower  *follower
	receiver  transport.Receiver
	candidate *candidate
	cancel    context.CancelFunc
	idle      *idleTimer

	received  int  // frames
	malformed bool // the server violated the protocol of the transport or of the framing
}

// request opens a response with the parameters p. It ends with ctx.
func (f *follower) request(ctx context.Context, p params) (*response, error) {
	r := f.remote
	ctx, cancel := context.WithCancel(ctx)
	s := &response{follower: f, cancel: cancel, idle: newIdleTimer(r.idle(), cancel)}
	req := &transport.Request{URL: p.in(f.url), Framings: r.Framings, Codings: r.codings(), Limit: r.limit(), Activity: s.idle.reset}
	err := r.authorized(ctx, f.refresh, func(h http.Header) (err error) {
		req.Header = h
		s.receiver, s.candidate, err = r.state.fallback.dial(ctx, req, r.Trace)
		return err
	})
	f.refresh = false
	if err == nil {
		err = f.checkEpoch(s.receiver.Header())
	}
	if err != nil {
		_ = s.Close()
		if s.idle.expired.Load() {
			err = errIdle
		}
		return nil, err
	}
	return s, nil
}

// checkEpoch returns an error if the header h names another epoch than the version to resume from.
func (f *follower) checkEpoch(h http.Header) error {
	epoch, before := h.Get(transport.EpochHeader), f.epoch
	if epoch == "" {
		return nil // a proxy may have removed the header
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

// Next implements [listwatch.Watcher]. It returns one event.
func (s *response) Next(_ context.Context, dst []listwatch.Event) (int, error) {
	f := s.follower
	if listed := f.listed; listed != nil {
		f.listed = nil
		if err := f.Take(listed); err != nil {
			return 0, err
		}
	}
	frame, err := s.receive()
	if err != nil {
		return 0, err
	}
	e, err := frame.TrustedEvent()
	if err != nil {
		return 0, err
	}
	f.remote.learnFrom(e.Object)
	if e.Type == listwatch.Bookmark && !f.reflector.Resume.Synced {
		// The first bookmark of such a server ends the initial events, so its object must say that.
		e = listwatch.NewBookmark(listwatch.Describe(f.remote), e.Version, true)
	}
	dst[0] = e
	return 1, nil
}

func (s *response) receive() (framing.WatchEvent, error) {
	frame, err := s.receiver.Receive()
	switch {
	case err == nil:
		s.received++
	case s.idle.expired.Load():
		return frame, errIdle
	case listwatch.CodeOf(err) == listwatch.Corrupt:
		s.malformed = true
	}
	return frame, err
}

// Close implements [listwatch.Watcher].
func (s *response) Close() error {
	s.idle.stop()
	if s.receiver != nil {
		_ = s.receiver.Close() // the response is not read any more
	}
	s.cancel()
	return nil
}
