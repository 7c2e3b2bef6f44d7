package controller

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Presence is an object that exists as long as a process runs, such as the Lease of an agent or
// an entry of a service registry. The process creates the object, renews it, and deletes it at the
// end. If the process dies or loses its connection, the store deletes the object after its TTL, so
// watchers receive DELETED.
type Presence struct {
	// Store is the collection of the object, in a store or behind a URL. It must also be a
	// [listwatch.Patcher]. Its server must end objects (store.CollectionSpec.TTL, serve --ttl);
	// otherwise the object of a process that died stays until the next process replaces it.
	Store listwatch.Store
	// Object is the JSON of the object. It must have a name. A process that starts replaces an
	// object of this name, which an earlier process may have left.
	Object []byte
	// Every is the interval between renewals. It should be at most a third of the TTL, so that the
	// object survives two failures. If zero or negative, DefaultRenewal is used.
	Every time.Duration
	// Lost is called when a renewal finds that the object no longer exists, for example because the
	// server could not be reached for longer than the TTL. Run then creates the object again. Lost
	// must return quickly. If nil, it is not called.
	Lost func(error)
}

// DefaultRenewal is the default of [Presence.Every].
const DefaultRenewal = 10 * time.Second

// Run creates the object and renews it until ctx ends. Then it deletes the object and returns
// ctx.Err(). It retries after failures that may pass. It returns an error of code Conflict if a
// process that started later has taken the name, and any other error that a retry cannot repair,
// such as Forbidden, Invalid, or Unauthorized after the Store has tried fresh credentials. NotFound
// is such an error if it means that there is no collection.
func (p Presence) Run(ctx context.Context) error {
	r, err := p.newRenewer()
	if err != nil {
		return err
	}
	every := p.Every
	if every <= 0 {
		every = DefaultRenewal
	}
	for {
		// With half the interval, two renewals without a response leave time for a third one.
		try, cancel := context.WithTimeout(ctx, every/2)
		err := r.renew(try)
		cancel()
		wait := every
		switch {
		case ctx.Err() != nil:
		case err == nil:
		case errors.Is(err, errLost):
			if wait = 0; p.Lost != nil {
				p.Lost(err)
			}
		case isPermanent(err):
			return err
		default:
			wait = every / 4
		}
		// The waits are random, so that processes that failed together do not retry together.
		if !reflector.Sleep(ctx, wait*3/4+mathrand.N(wait/4+1)) {
			break
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(every, leaveTimeout))
	defer cancel()
	r.leave(end)
	return ctx.Err()
}

// leaveTimeout limits the time in which a Presence deletes its object.
const leaveTimeout = 5 * time.Second

// errLost is wrapped by the error of a renewal that did not find the object.
var errLost = errors.New("the object had ended before it was renewed")

// isPermanent reports whether a retry cannot repair err.
func isPermanent(err error) bool {
	switch listwatch.CodeOf(err) {
	case listwatch.Conflict, listwatch.Forbidden, listwatch.Unauthorized, listwatch.Invalid, listwatch.Unsupported,
		listwatch.NotFound:
		return true
	}
	return false
}

// presenceAnnotation holds a random text, by which a Presence recognizes the object that it has
// created, even if the response to the create was lost.
const presenceAnnotation = "listwatch.dev/presence"

// A renewer keeps the object of a Presence alive.
type renewer struct {
	store   listwatch.Store
	patcher listwatch.Patcher
	key     listwatch.Key
	object  []byte // with the presenceAnnotation
	id      string // its value
	uid     string // of the object; empty while it is not known to exist
	wasHeld bool   // uid was set before
}

func (p Presence) newRenewer() (*renewer, error) {
	patcher, ok := p.Store.(listwatch.Patcher)
	if !ok {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Op: "presence", Message: "the Store is not a Patcher"}
	}
	o, err := listwatch.ParseObject(p.Object)
	if err != nil {
		return nil, err
	}
	if o.Key.Name == "" {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "presence", Message: "the object has no name"}
	}
	r := &renewer{store: p.Store, patcher: patcher, key: o.Key, id: rand.Text()}
	r.object, err = rawjson.Merge(o.Data, []byte(`{"metadata":{"annotations":{"`+presenceAnnotation+`":"`+r.id+`"}}}`))
	return r, err
}

// renew renews the object, or creates it if it is not known to exist. An error that wraps errLost
// means that it no longer exists.
func (r *renewer) renew(ctx context.Context) error {
	if r.uid == "" {
		return r.enter(ctx)
	}
	p := listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(`{"metadata":{"uid":"` + r.uid + `"}}`), Minimal: true,
	}
	_, err := r.patcher.Patch(ctx, r.key, p)
	switch {
	case errors.Is(err, listwatch.NotFound):
		r.uid = ""
		return &listwatch.Error{Code: listwatch.NotFound, Op: "presence " + r.key.String(), Err: errLost}
	case refusesUID(err):
		return r.errReplaced()
	}
	return err
}

// refusesUID reports whether err means that the object has another uid. A Kubernetes API server
// responds with 422 and a cause.
func refusesUID(err error) bool {
	e := listwatch.AsError(err)
	return errors.Is(err, listwatch.Conflict) || e != nil && e.Details != nil &&
		slices.ContainsFunc(e.Details.Causes, func(c listwatch.Cause) bool { return c.Field == "metadata.uid" })
}

// enter creates the object. If an earlier process has left one, enter deletes it first. It does not
// update that object, because the earlier process may still run: it would renew the object of this
// process, and delete it when it stops.
func (r *renewer) enter(ctx context.Context) error {
	o, err := r.store.Create(ctx, r.object)
	if errors.Is(err, listwatch.AlreadyExists) {
		if o, err = r.store.Get(ctx, r.key); err != nil {
			return retryable(err)
		}
		uid, _ := rawjson.String(rawjson.Lookup(o.Data, "metadata", "uid"))
		switch id, _ := rawjson.String(rawjson.Lookup(o.Data, "metadata", "annotations", presenceAnnotation)); {
		case id == r.id: // an earlier attempt created it
		case r.wasHeld:
			return r.errReplaced()
		default:
			if _, err = r.store.Delete(ctx, r.key, listwatch.Preconditions{UID: uid}); err != nil {
				return retryable(err)
			}
			if o, err = r.store.Create(ctx, r.object); err != nil {
				return retryable(err)
			}
		}
	}
	if err == nil {
		r.uid, err = rawjson.String(rawjson.Lookup(o.Data, "metadata", "uid"))
		r.wasHeld = true
	}
	return err
}

// retryable returns err, the error of a step that races with other writers, with another code if
// its own one is permanent only for other steps.
func retryable(err error) error {
	if errors.Is(err, listwatch.NotFound) || errors.Is(err, listwatch.Conflict) {
		return &listwatch.Error{Code: listwatch.Unavailable, Op: "presence", Err: err}
	}
	return err
}

func (r *renewer) errReplaced() error {
	return &listwatch.Error{
		Code: listwatch.Conflict, Op: "presence " + r.key.String(), Message: "another process has replaced the object",
	}
}

// leave deletes the object. If that fails, the object ends after its TTL.
func (r *renewer) leave(ctx context.Context) {
	if r.uid != "" {
		_, _ = r.store.Delete(ctx, r.key, listwatch.Preconditions{UID: r.uid})
	}
}
