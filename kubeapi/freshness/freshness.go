// Package freshness lets a controller of controller-runtime read its own writes from its cache.
//
//	mgr, err := manager.New(config, manager.Options{NewClient: freshness.NewClient})
//
// A read of the manager's client waits until the cache has every write that this client made before
// the read: a Reconcile never sees a state older than the one that it wrote. controller-runtime
// implements that, but it is off by default, and a read whose write never arrives would block a
// worker forever. Here such a read fails after a limit. It never returns an older state.
package freshness

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultLimit is the default of [Options.Limit].
const DefaultLimit = 10 * time.Second

// Options configure [Options.NewClient]. The zero Options are usable.
type Options struct {
	// Limit is the time for which a read waits for the cache. If zero or negative, DefaultLimit is
	// used.
	Limit time.Duration
}

// NewClient is the NewClient of the zero [Options], for the field NewClient of manager.Options and
// cluster.Options.
func NewClient(config *rest.Config, with client.Options) (client.Client, error) {
	return Options{}.NewClient(config, with)
}

// NewClient returns a client whose reads from the cache contain its own writes. If with has no
// cache, all reads go to the API server, and the client is the one of controller-runtime.
//
// If the cache does not have the writes within the limit, the error is a timeout, for which
// apierrors.IsTimeout returns true, with the status 504: retry. The causes are a connection to the
// API server that is slow or interrupted, and a write whose object the selectors of the cache
// exclude, because the cache receives no event for it. For such a write, use
// client.DisableReadYourWritesConsistency.
//
// The rules of controller-runtime apply. It waits for each representation of a kind (typed,
// unstructured, metadata only) separately. It does not support a cache of several namespaces, and
// DeleteAllOf returns an error.
func (o Options) NewClient(config *rest.Config, with client.Options) (client.Client, error) {
	if with.Cache == nil || with.Cache.Reader == nil {
		return client.New(config, with)
	}
	enabled, cache := true, *with.Cache
	cache.EnableReadYourWritesConsistency = &enabled
	with.Cache = &cache
	c, err := client.New(config, with)
	if err != nil {
		return nil, err
	}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	return &limited{Client: c, limit: o.Limit}, nil
}

// A limited client limits the time for which reads wait.
type limited struct {
	client.Client
	limit time.Duration
}

// Get implements [client.Reader].
func (l *limited) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return l.read(ctx, key.String(), o, func(ctx context.Context) error { return l.Client.Get(ctx, key, o, opts...) })
}

// List implements [client.Reader].
func (l *limited) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	return l.read(ctx, "the list", all, func(ctx context.Context) error { return l.Client.List(ctx, all, opts...) })
}

// errLimit is the cause of the end of a context at the limit.
var errLimit = errors.New("the limit has passed")

// read calls f with a context that ends at the limit.
func (l *limited) read(ctx context.Context, what string, o any, f func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, l.limit, errLimit)
	defer cancel()
	err := f(limited)
	if err == nil || context.Cause(limited) != errLimit || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return apierrors.NewTimeoutError(fmt.Sprintf(
		"read %T %s: the cache does not have this program's own writes after %v: %v", o, what, l.limit, err), 1)
}
