package client

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A fallback holds the transports of a Remote, best first. A transport that fails is tried
// last for demotionPeriod. Then it is tried at its usual position again, because the proxy
// that blocked it may no longer be in use.
type fallback struct {
	candidates []*candidate // immutable once in use
	query      queryMethod

	mu sync.Mutex // guards demotedUntil of all candidates
}

// A candidate is one transport.
type candidate struct {
	client       transport.Client
	demotedUntil time.Time
}

// demotionPeriod is the time during which a failed transport is tried last.
const demotionPeriod = 10 * time.Minute

// order returns the candidates in the order in which to try them.
func (f *fallback) order() []*candidate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	candidates := slices.Clone(f.candidates)
	slices.SortStableFunc(candidates, func(a, b *candidate) int {
		return cmp.Compare(max(a.demotedUntil.Sub(now), 0), max(b.demotedUntil.Sub(now), 0))
	})
	return candidates
}

// demote makes c the last candidate for demotionPeriod.
func (f *fallback) demote(c *candidate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.demotedUntil = time.Now().Add(demotionPeriod)
}

// A failedDial is a candidate that could not connect, and the reason.
type failedDial struct {
	candidate *candidate
	err       error
}

// dial sends r over the first transport that works. It demotes the transports that failed before
// that one. If all transports fail, it demotes none, because the reason is then not the transport.
// If ctx ends, dial returns the transport that has not responded.
func (f *fallback) dial(
	ctx context.Context, r *transport.Request, trace *Trace,
) (transport.Receiver, *candidate, error) {
	var failed []failedDial
	for _, c := range f.order() {
		receiver, err := f.dialOne(ctx, c, r)
		if err != nil && ctx.Err() == nil && isTransportFailure(c.client.Name(), err) {
			trace.transportFailed(c.client.Name(), err)
			failed = append(failed, failedDial{c, err})
			continue
		}
		for _, d := range failed {
			f.demote(d.candidate)
		}
		return receiver, c, err
	}
	return nil, nil, mostTelling(failed)
}

// dialOne sends r over c. It falls back to another method, but not to another transport.
func (f *fallback) dialOne(ctx context.Context, c *candidate, r *transport.Request) (transport.Receiver, error) {
	var receiver transport.Receiver
	err := f.query.send(r.URL, func(method string) (err error) {
		request := *r
		request.Method = method
		receiver, err = c.client.Dial(ctx, &request)
		return err
	})
	return receiver, err
}

// isTransportFailure reports whether another transport may work after err.
func isTransportFailure(name string, err error) bool {
	e := listwatch.AsError(err)
	switch {
	case e.Remote && name == "websocket" && slices.Contains(upgradeRefusals, e.Status):
		return true
	case e.Remote:
		return slices.Contains(protocolRefusals, e.Status)
	case e.Code == listwatch.Unavailable:
		// A server that refuses a connection refuses it for every transport. If the connection
		// was lost after it was opened, another transport may work, because the server or a proxy
		// may not support the protocol.
		op, ok := errors.AsType[*net.OpError](err)
		return !ok || op.Op != "dial"
	}
	return e.Code == listwatch.Unsupported || e.Code == listwatch.Corrupt
}

// protocolRefusals are the statuses by which a server refuses the transport and not the request.
var protocolRefusals = []int{
	http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// upgradeRefusals are the statuses by which servers and proxies refuse an upgrade. If such a
// status concerns the request instead of the upgrade, the attempt over the next transport
// fails with the same status.
var upgradeRefusals = append([]int{
	http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed,
}, protocolRefusals...)

// mostTelling returns the most informative error: an error that the server sent, otherwise an error
// of code Unavailable, otherwise the first error.
func mostTelling(failed []failedDial) error {
	if len(failed) == 0 {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "dial",
			Message: "Remote.Transports is empty: want nil or at least one transport",
		}
	}
	err := failed[0].err
	for _, d := range failed {
		switch e := listwatch.AsError(d.err); {
		case e.Remote:
			return d.err
		case e.Code == listwatch.Unavailable:
			err = d.err
		}
	}
	return err
}
