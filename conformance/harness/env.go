package harness

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// An Env is the environment of a case: a collection, a server for it, and a client for one
// transport.
type Env struct {
	T
	Variant
	Target Target
	Setup  Setup
	*Collection
	*Route
	Timeline *timeline
}

// A Route is a running server and a client for it.
type Route struct {
	*Instance
	Client transport.Client
}

// NewEnv opens a collection of the target, with a server and a client.
func NewEnv(t T, target Target, w Variant, s Setup, log *timeline) *Env {
	t.Helper()
	s.ServerTransport, s.HTTP2 = w.Server, w.HTTP2
	e := &Env{T: t, Variant: w, Target: target, Setup: s, Collection: &Collection{usage: new(usage)}, Timeline: log}
	e.Route = e.RouteTo(target.Open(t, s))
	e.Collection.Objects = e.Store
	return e
}

// WithNewCollection returns an Env with a new, unrelated collection.
func (e *Env) WithNewCollection() *Env {
	e.Helper()
	e.Use(UnrelatedCollection)
	return e.openAnother()
}

func (e *Env) openAnother() *Env {
	e.Helper()
	other := NewEnv(e.T, e.Target, e.Variant, e.Setup, e.Timeline)
	other.usage = e.usage
	return other
}

// RestartServer restarts the server and returns an Env for it. If the target cannot restart its
// server, the Env has a new, unrelated collection, which stands for a server that lost its objects.
// keptObjects reports whether the objects still exist.
func (e *Env) RestartServer() (restarted *Env, keptObjects bool) {
	e.Helper()
	e.Use(Restarts)
	if e.Restart == nil {
		return e.openAnother(), false
	}
	if err := e.Restart(e.Context()); err != nil {
		e.Fatalf("restart: %v", err)
	}
	e.Timeline.notef("restarted")
	return e, true
}

// RouteTo returns a route to s with a new client.
func (e *Env) RouteTo(s *Instance) *Route {
	e.Helper()
	e.Timeline.hide(s.Header)
	s.Network = e.Timeline.recordConns(s.Network, s.UsesTLS())
	return &Route{s, e.NewClient(s, e.Variant)}
}

// NewClient returns a client of variant w for the instance s.
func (e *Env) NewClient(s *Instance, w Variant) transport.Client {
	c := w.newClient(s.Network)
	if wrap := e.Target.TransportClient; wrap != nil {
		c = wrap(c)
	}
	if idle, ok := c.(interface{ CloseIdleConnections() }); ok {
		e.Cleanup(idle.CloseIdleConnections)
	}
	if e.Target.TransportClient != nil {
		return &unsupportedSkipper{c, e.T}
	}
	return c
}

// unsupportedSkipper skips the case if the client under test reports a MissingAbility.
type unsupportedSkipper struct {
	transport.Client
	t T
}

// Dial implements transport.Client.
func (u *unsupportedSkipper) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := u.Client.Dial(ctx, r)
	if missing, ok := errors.AsType[MissingAbility](err); ok {
		u.t.Skipf("%s", missing)
	}
	return receiver, err
}

// WithRoute returns a copy of e with another route.
func (e *Env) WithRoute(r *Route) *Env {
	other := *e
	other.Route = r
	return &other
}

// WithReplica returns a copy of e that uses a second server for the same collection.
func (e *Env) WithReplica() *Env {
	e.Helper()
	e.Use(Replicas)
	return e.WithRoute(e.RouteTo(e.Replica()))
}

// IsVariant reports whether the case runs in the variant called name. Cases use it to tolerate
// a WebSocket library that does not follow a rule.
func (e *Env) IsVariant(name string) bool { return e.Variant.Name == name }

// WithVariant returns a copy of e with a client of variant w for the same server.
func (e *Env) WithVariant(w Variant) *Env {
	other := *e
	other.Variant, other.Route = w, &Route{e.Instance, e.NewClient(e.Instance, w)}
	return &other
}

// CompactHistory drops the whole history.
func (e *Env) CompactHistory() {
	e.Helper()
	e.Use(Compacts)
	if err := e.Compact(e.Context()); err != nil {
		e.Fatalf("compact: %v", err)
	}
	e.Timeline.notef("compacted")
}

// DrainWatches ends all watches.
func (e *Env) DrainWatches() {
	e.Helper()
	e.Use(Drains)
	if err := e.Drain(e.Context()); err != nil {
		e.Errorf("drain: %v", err)
	}
}

// Pause waits for the first duration if the clock is fake, and otherwise for the second.
func (e *Env) Pause(fake, real time.Duration) { <-time.After(e.Either(fake, real)) }

// Either returns the first duration if the clock is fake, and otherwise the second.
func (e *Env) Either(fake, real time.Duration) time.Duration {
	if e.Setup.FakeTime {
		return fake
	}
	return real
}

// Patience returns the time that a case waits for an expected event.
func (e *Env) Patience() time.Duration {
	if e.Setup.FakeTime {
		return time.Hour
	}
	if e.Target.Patience > 0 {
		return e.Target.Patience
	}
	return DefaultPatience
}

// DefaultPatience is used if Target.Patience is zero.
const DefaultPatience = 10 * time.Second

// Supports reports whether the target has all abilities in a.
func (e *Env) Supports(a Ability) bool { return e.Target.Abilities&a == a }

// Random returns a random number generator that starts from Target.Seed, or from a random seed if
// Target.Seed is zero. It logs the seed, so that a failure can be repeated.
func (e *Env) Random() *rand.Rand {
	seed := e.Target.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	e.Logf("seed %d; to repeat, set Target.Seed, or --seed of listwatch conformance", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// usage records the abilities that a case has used.
type usage struct {
	mu   sync.Mutex
	used Ability // guarded by mu
}

// Use records that the case uses the ability a.
func (c *Collection) Use(a Ability) {
	c.usage.mu.Lock()
	defer c.usage.mu.Unlock()
	c.usage.used |= a
}

// UsedAbilities returns the abilities that the case has used so far.
func (c *Collection) UsedAbilities() Ability {
	c.usage.mu.Lock()
	defer c.usage.mu.Unlock()
	return c.usage.used
}
