package apihttp

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/transport"
)

// A Gate is the entrance of a server: the only place that decides whether a request is admitted.
// It is safe for concurrent use.
type Gate struct {
	// Immutable after construction.

	// AllowOrigins returns the patterns of the other origins whose pages may write.
	AllowOrigins func() []string
	// NoCompression returns the default of [Admitted.NoCompression].
	NoCompression func() bool
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

	rechecks   atomic.Uint64 // the number of calls of Recheck
	budget     budget.Budget
	turns      budget.Turns
	stored     storedMemory
	blocksOnce sync.Once
	blocks     *compress.BlockCache // see BlockCache
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

// Enter admits r. It returns r with its Admitted in the context, and the Admitted. The caller must
// call [Admitted.Leave]. If r is refused, Enter sends the response and returns false. A request may
// enter one gate several times, for example in front of a router that needs no credentials, and
// again in front of a path that does. Each check happens once, unless the method, the query or the
// Accept headers were changed in between. A QUERY becomes a GET once its sender is known.
func (g *Gate) Enter(w http.ResponseWriter, r *http.Request) (*http.Request, *Admitted, bool) {
	e, ctx := entryOf(r), r.Context()
	before, err := admittedOf(r), error(nil)
	a, isNew := before, before == nil || before.gate != g
	if isNew {
		httpbody.Guard(w, r)
		a = &Admitted{
			gate: g, NoCompression: g.NoCompression(), Resource: e.resource, rechecks: g.rechecks.Load(),
			Parsed: new(Parsed),
		}
	}
	isChanged := !a.isOf(r) // r is new, or middleware behind the previous gate has changed it
	if !e.unchecked && (isChanged || !a.passage.checked) {
		err = g.check(r, before)
	}
	if a.passage.checked = err == nil && !e.unchecked; isChanged && err == nil {
		a.Parsed = Parse(r)
	}
	if err == nil && !e.open && !a.passage.identified {
		var identified context.Context
		if identified, err = g.Authenticate(r); err == nil {
			ctx, a.passage.identified = identified, true
		}
	}
	if a.taken == (budget.Amount{}) { // otherwise Leave must return it for the same a.Client
		a.User, a.Client = g.Sender(ctx, r)
	}
	if err != nil {
		a.Refuse(w, r, err)
		return r, a, false
	}
	a.passage.entered++
	// A stranger must not make the server read a body.
	if r.Method == transport.MethodQuery && !e.open {
		if r, err = a.readQuery(w, r); err != nil {
			a.Refuse(w, r, err)
			a.Leave()
			return r, a, false
		}
		a.Parsed = Parse(r)
	}
	if e != (entry{}) {
		ctx = context.WithValue(ctx, entryKey{}, entry{})
	}
	if isNew {
		ctx = &admittedContext{ctx, a}
	}
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	return r, a, true
}

// check applies the checks that need no user. before is the result of another gate, or nil.
func (g *Gate) check(r *http.Request, before *Admitted) error {
	limits := g.Limits()
	if before != nil && before.passage.queryInBody && before.isOf(r) {
		limits.URLBytes = 0
	}
	if err := limits.check(r); err != nil {
		return err
	}
	if err := checkImpersonation(r); err != nil {
		return err
	}
	return checkOrigin(r, g.AllowOrigins())
}

// Recheck makes [Admitted.Outdated] true for all requests admitted so far.
func (g *Gate) Recheck() { g.rechecks.Add(1) }

// BlockCache returns the compressed blocks of the gate's large responses.
func (g *Gate) BlockCache() *compress.BlockCache {
	g.blocksOnce.Do(func() { g.blocks = compress.NewBlockCache(g.Limits().blockBytes()) })
	return g.blocks
}

// Turns returns the turns of the requests.
func (g *Gate) Turns() *budget.Turns { return &g.turns }

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
	l := limits.budget(stored, g.BlockCache().Used())
	limit = Usage{Requests: l.Requests, Writes: l.Writes, RequestBytes: l.Bytes, StoredBytes: limits.storedBytes()}
	return used, limit
}

// A HandlerFunc is an [http.Handler] behind a [Gate]. The error that it returns becomes the
// response. Without a gate, the response has status 500.
type HandlerFunc func(w http.ResponseWriter, r *http.Request, a *Admitted) error

// ServeHTTP implements [http.Handler].
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := admittedOf(r)
	if a == nil {
		WriteError(
			w, r, &listwatch.Error{Code: listwatch.Unknown, Message: "the request has not passed the gate of a server"})
		return
	}
	a.Respond(w, r, f(w, r, a))
}

type entryKey struct{}

// An entry has the properties of a request that a handler in front of a gate has set.
type entry struct {
	open      bool     // the next gate requires no credentials
	unchecked bool     // the next gate checks nothing; see ForAnotherServer
	resource  Resource // set by WithResource
}

func entryOf(r *http.Request) entry {
	e, _ := r.Context().Value(entryKey{}).(entry)
	return e
}

// WithoutCredentials returns a copy of r that the next gate admits without credentials, for
// requests such as health probes.
func WithoutCredentials(r *http.Request) *http.Request {
	e := entryOf(r)
	e.open = true
	return withEntry(r, e)
}

// ForAnotherServer returns a copy of r that the next gate admits without credentials and without
// checks, because its handler may pass r on to another server, which has rules of its own: a long
// URL, an impersonation or a page of another origin may be acceptable there. If the handler serves
// r itself, it lets r enter the gate once more.
func ForAnotherServer(r *http.Request) *http.Request {
	e := entryOf(r)
	e.open, e.unchecked = true, true
	return withEntry(r, e)
}

// WithResource returns a copy of r that the next gate admits as a request for resource.
func WithResource(r *http.Request, resource Resource) *http.Request {
	e := entryOf(r)
	e.resource = resource
	return withEntry(r, e)
}

func withEntry(r *http.Request, e entry) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
}
