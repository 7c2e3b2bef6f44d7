package sources

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A relayedDatabase sends writes to an origin, which is a memory store, and reads through a chain
// of relays of that origin.
type relayedDatabase struct {
	*memory.DB
	depth   int
	overURL bool // each relay watches over HTTP
	t       conformance.T
	options relay.Options
	relays  []*relay.Relay
}

// Collection implements [conformance.Database].
func (r *relayedDatabase) Collection(spec store.CollectionSpec) (*store.Collection, error) {
	c, err := r.DB.Collection(spec)
	if err != nil {
		return nil, err
	}
	b := &relayedBackend{origin: c.Backend(), Source: c}
	for range r.depth {
		if r.overURL {
			b.Source = r.overHTTP(b.Source)
			r.options.Fields = spec.Fields
		}
		b.Relay = relay.Open(b.Source, r.options)
		b.Source = b.Relay
		r.relays = append(r.relays, b.Relay)
		r.t.Cleanup(func() { b.Relay.Close() })
		if err := awaitRelay(r.t.Context(), b.Relay, listwatch.Query{Limit: 1}); err != nil {
			return nil, err
		}
	}
	return store.New(spec, b), nil
}

// overHTTP starts a server that serves s, and returns a client of that server.
func (r *relayedDatabase) overHTTP(s listwatch.Source) listwatch.Source {
	server := httptest.NewServer(&watchserver.Server{Source: s})
	remote := &client.Remote{URL: server.URL + "/things"}
	r.t.Cleanup(func() {
		remote.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return remote
}

// Compact implements [conformance.Database]. It compacts the origin last: the relay of a collection
// without recent writes probes the origin from its own version, which must not have expired.
func (r *relayedDatabase) Compact() {
	for _, relay := range r.relays {
		if err := relay.Compact(r.t.Context()); err != nil {
			r.t.Error(err)
		}
	}
	r.DB.Compact()
}

// A relayedBackend writes to the origin and reads from the last relay.
type relayedBackend struct {
	*relay.Relay
	listwatch.Source
	origin store.Backend
}

func (r *relayedBackend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return r.Relay.List(ctx, q)
}

func (r *relayedBackend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return r.Relay.Watch(ctx, q)
}

// Commit implements [store.Backend]. A relay lags slightly behind its origin. Commit waits until
// the relay itself has the write, because cases that drain the server or compact the history right
// after a write would fail during the lag. One list does not tell, because it may pass through.
func (r *relayedBackend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	o, err := r.origin.Commit(ctx, c)
	for err == nil && r.Relay.Health().Version < o.Version {
		err = awaitRelay(ctx, r.Relay, listwatch.Query{
			Start: listwatch.StartAt, Version: o.Version, Limit: 1, Match: listwatch.MatchNotOlderThan,
		})
	}
	return o, err
}

// awaitRelay repeats a list until r can serve q, because one list waits for at most three seconds.
func awaitRelay(ctx context.Context, r *relay.Relay, q listwatch.Query) error {
	for {
		_, err := r.List(ctx, q)
		if code := listwatch.CodeOf(err); code != listwatch.NotYet && code != listwatch.Unavailable ||
			ctx.Err() != nil {
			return err
		}
	}
}

func TestRelayIsASource(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		return &relayedDatabase{
			DB: memory.Open(memory.Options{History: listwatch.Retention{Bytes: historyBytes}}), depth: 1, t: t,
			options: relay.Options{History: listwatch.Retention{Bytes: historyBytes}},
		}
	}, withoutWireCases())
}

func TestRelayOfURLIsASource(t *testing.T) {
	if testing.Short() || racetest.Enabled && !*all {
		t.Skip("slow; the in-process test covers most of it")
	}
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		return &relayedDatabase{
			DB:    memory.Open(memory.Options{History: listwatch.Retention{Bytes: historyBytes}}),
			depth: 1, t: t, overURL: true,
			options: relay.Options{History: listwatch.Retention{Bytes: historyBytes}},
		}
	})
}
