package apihttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/httpbody"
)

// A Gate is the entrance of a server: the only place that decides whether a request is admitted.
// It is safe for concurrent use.
type Gate struct {
	// Immutable after construction.

	// AllowOrigins are the patterns of the other origins whose pages may write.
	AllowOrigins []string
	// NoCompression is the default of [Admitted.NoCompression].
	NoCompression bool
	// Limits returns the limits of requests.
	Limits func() Limits
	// Sender returns the name of the user in ctx, which is empty if unknown, and the name of the
	// client whose share of the limits r uses.
	Sender func(ctx context.Context, r *http.Request) (user, client string)
	// Authenticate returns the context of r with its user, or the error to send to the client.
	Authenticate func(r *http.Request) (context.Context, error)
	// Refused is called after an error response, and Changed after the response to a write that
	// succeeded.
	Refused func(r *http.Request, a *Admitted, err error)
	Changed func(r *http.Request, a *Admitted, c Change)
	// Draining returns a context that ends when the server begins to drain.
	Draining func() context.Context

	rechecks atomic.Uint64 // the number of calls of Recheck
	budget   budget.Budget
	turns    budget.Turns
	stored   storedMemory
}

// WithoutCredentials returns a copy of r that the next gate admits without credentials, for
// requests such as health probes.
func WithoutCredentials(r *http.Request) *http.Request {
	e := entryOf(r)
	e.open = true
	return r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
}

// Handler returns a handler that passes admitted requests on to next, and refuses all other
// requests; see [Gate.Enter].
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r, a, ok := g.Enter(w, r); ok {
			defer a.Leave()
			next.ServeHTTP(w, r)
		}
	})
}

// Enter admits r. It returns r with its Admitted in the context, and the Admitted, whose Leave the
// caller must call. If r is refused, Enter sends the response and returns false. A request may enter
// one gate several times, for example in front of a router that needs no credentials, and again in
// front of a path that does. Each check happens once.
func (g *Gate) Enter(w http.ResponseWriter, r *http.Request) (*http.Request, *Admitted, bool) {
	e, ctx := entryOf(r), r.Context()
	a, err := e.admitted, error(nil)
	if a == nil || a.gate != g {
		httpbody.Guard(w, r)
		a = &Admitted{gate: g, NoCompression: g.NoCompression, rechecks: g.rechecks.Load()}
		if err = g.check(r); err == nil {
			a.Parsed = Parse(r)
		}
	}
	if err == nil && !e.open && !a.identified {
		var identified context.Context
		if identified, err = g.Authenticate(r); err == nil {
			ctx, a.identified = identified, true
		}
	}
	client := a.Client
	if a.taken == (budget.Amount{}) { // otherwise Leave must return it for the same a.Client
		a.User, a.Client = g.Sender(ctx, r)
	}
	if err != nil {
		a.Refuse(w, r, err)
		return r, a, false
	}
	a.entered++
	if e != (entry{admitted: a}) {
		ctx = context.WithValue(ctx, entryKey{}, entry{admitted: a})
	}
	if client != a.Client {
		ctx = budget.WithTurns(ctx, &g.turns, a.Client)
	}
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	return r, a, true
}

// check applies the checks that need no user.
func (g *Gate) check(r *http.Request) error {
	if err := g.Limits().check(r); err != nil {
		return err
	}
	if err := checkImpersonation(r); err != nil {
		return err
	}
	return checkOrigin(r, g.AllowOrigins)
}

// Recheck makes [Admitted.Outdated] true for all requests admitted so far.
func (g *Gate) Recheck() { g.rechecks.Add(1) }

// A HandlerFunc is an [http.Handler] behind a [Gate]. The error that it returns becomes the
// response. Without a gate, the response has status 500.
type HandlerFunc func(w http.ResponseWriter, r *http.Request, a *Admitted) error

// ServeHTTP implements [http.Handler].
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := entryOf(r).admitted
	if a == nil {
		WriteError(
			w, r, &listwatch.Error{Code: listwatch.Unknown, Message: "the request has not passed the gate of a server"})
		return
	}
	a.Respond(w, r, f(w, r, a))
}

// Respond sends the response for err, the result of a handler. It does nothing if err is nil.
func (a *Admitted) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		return
	}
	if ended := r.Context().Err(); ended != nil && errors.Is(err, ended) {
		err = ContextError(r.Context())
	}
	a.Refuse(w, r, err)
}

// ContextError returns the error for a request whose context ctx has ended. It is the cause of ctx
// if that is a *listwatch.Error. Otherwise it has status 504 if the deadline of ctx has passed, and
// status 503 if not.
func ContextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*listwatch.Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &listwatch.Error{
			Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
			Message: "the request has reached its deadline", Err: cause,
		}
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "the request was canceled", Err: cause}
}

// Refuse responds to r with err, like [WriteError], and then calls Gate.Refused.
func (a *Admitted) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	defer a.gate.Refused(r, a, err)
	WriteError(w, r, err)
}

// checkStored refuses a write if stored data fills its part of the memory. A delete is always
// allowed, because it makes room.
func (g *Gate) checkStored(r *http.Request) error {
	l := g.Limits()
	limit := l.storedBytes()
	if limit == 0 || r.Method == http.MethodDelete {
		return nil
	}
	if stored, _ := g.stored.read(l.Stored); stored < limit {
		return nil
	}
	return &LimitError{"stored_bytes", &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: fmt.Sprintf(
			"objects and history fill the %d MiB of memory that are for them: delete objects, or retry later",
			limit>>20),
		Details: &listwatch.Details{RetryAfter: 10 * time.Second},
	}}
}

// Usage returns the resources in use, and their limits. In limit, zero means no limit. HistoryBytes
// has no limit of its own.
func (g *Gate) Usage() (used, limit Usage) {
	a, limits := g.budget.Used(), g.Limits()
	stored, history := g.stored.read(limits.Stored)
	used = Usage{
		Requests: a.Requests, Writes: a.Writes, RequestBytes: a.Bytes, StoredBytes: stored, HistoryBytes: history,
	}
	l := limits.budget(stored)
	limit = Usage{Requests: l.Requests, Writes: l.Writes, RequestBytes: l.Bytes, StoredBytes: limits.storedBytes()}
	return used, limit
}
