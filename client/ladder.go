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

// A ladder is the transports of a Remote, best first. What can't be used steps back behind the others for a while, and is tried again
// later: the proxy in between may be another one by then.
type ladder struct {
	rungs []*rung // immutable once it is in use

	mu sync.Mutex // guards backUntil of all rungs
}

// A rung is one transport.
type rung struct {
	client    transport.Client
	backUntil time.Time
}

// stepBack is how long a transport that could not be used comes last.
const stepBack = 10 * time.Minute

// order returns the rungs as they are to be tried.
func (l *ladder) order() []*rung {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	rungs := slices.Clone(l.rungs)
	slices.SortStableFunc(rungs, func(a, b *rung) int {
		return cmp.Compare(max(a.backUntil.Sub(now), 0), max(b.backUntil.Sub(now), 0))
	})
	return rungs
}

// demote makes rungs come last for a while.
func (l *ladder) demote(rungs ...*rung) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rungs {
		r.backUntil = time.Now().Add(stepBack)
	}
}

// A refusal is a transport that could not be used, and why.
type refusal struct {
	rung *rung
	err  error
}

// dial opens a stream over the first transport that works. What was refused on the way comes last from then on; unless all were, for
// then it is not the transports' fault.
func (l *ladder) dial(ctx context.Context, r *transport.Request, trace *Trace) (transport.Receiver, *rung, error) {
	var refused []refusal
	for _, rung := range l.order() {
		receiver, err := rung.client.Dial(ctx, r)
		if err != nil && ctx.Err() == nil && isRefusal(rung.client.Name(), err) {
			trace.refused(rung.client.Name(), err)
			refused = append(refused, refusal{rung, err})
			continue
		}
		for _, f := range refused {
			l.demote(f.rung)
		}
		return receiver, rung, err
	}
	return nil, nil, worst(refused)
}

// isRefusal reports whether err says that this transport doesn't work here, while another may.
func isRefusal(name string, err error) bool {
	e := listwatch.AsError(err)
	switch {
	case e.Remote && name == "websocket" && slices.Contains(upgradeRefusals, e.Status):
		return true
	case e.Remote:
		return slices.Contains(protocolRefusals, e.Status)
	case e.Code == listwatch.Unavailable:
		// Where nobody answers, nobody will on another transport. Where somebody did and then broke off, it may have been for
		// what was said.
		op, ok := errors.AsType[*net.OpError](err)
		return !ok || op.Op != "dial"
	}
	return e.Code == listwatch.Unsupported || e.Code == listwatch.Corrupt
}

// protocolRefusals are the statuses by which a server refuses the transport and not the request.
var protocolRefusals = []int{http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported}

// upgradeRefusals are those by which servers and proxies refuse to switch protocols. They may mean the request, too: the next
// transport will tell.
var upgradeRefusals = append([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed}, protocolRefusals...)

// worst returns the one of several errors that tells most: what the server said, else that it can't be reached, else the first.
func worst(refused []refusal) error {
	if len(refused) == 0 {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "dial", Message: "the Remote has no transports"}
	}
	err := refused[0].err
	for _, f := range refused {
		switch e := listwatch.AsError(f.err); {
		case e.Remote:
			return f.err
		case e.Code == listwatch.Unavailable:
			err = f.err
		}
	}
	return err
}
