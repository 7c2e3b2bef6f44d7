package sources

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A relayedDatabase sends writes to an origin in memory, and reads through a chain of relays of
// that origin.
type relayedDatabase struct {
	*memory.DB
	depth   int
	overURL bool // each relay watches over HTTP
	t       conformance.T
	options relay.Options
	relays  []*relay.Relay
}

// Collection implements [conformance.Database].
func (d *relayedDatabase) Collection(r store.CollectionSpec) (*store.Collection, error) {
	c, err := d.DB.Collection(r)
	if err != nil {
		return nil, err
	}
	b := &relayedBackend{origin: c.Backend(), Source: c}
	for range d.depth {
		if d.overURL {
			b.Source = d.overHTTP(b.Source)
			d.options.Fields = r.Fields
		}
		b.Relay = relay.Open(b.Source, d.options)
		b.Source = b.Relay
		d.relays = append(d.relays, b.Relay)
		d.t.Cleanup(func() { b.Relay.Close() })
		if err := awaitRelay(d.t.Context(), b.Relay, listwatch.Query{Limit: 1}); err != nil {
			return nil, err
		}
	}
	return store.New(r, b), nil
}

// overHTTP starts a server that serves s, and returns a client of that server.
func (d *relayedDatabase) overHTTP(s listwatch.Source) listwatch.Source {
	server := httptest.NewServer(&watchserver.Server{Source: s})
	remote := &client.Remote{URL: server.URL + "/things"}
	d.t.Cleanup(func() {
		remote.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return remote
}

// Compact implements [conformance.Database].
func (d *relayedDatabase) Compact() {
	d.DB.Compact()
	for _, r := range d.relays {
		if err := r.Compact(d.t.Context()); err != nil {
			d.t.Error(err)
		}
	}
}

// A relayedBackend writes to the origin and reads from the last relay.
type relayedBackend struct {
	*relay.Relay
	listwatch.Source
	origin store.Backend
}

func (b *relayedBackend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return b.Relay.List(ctx, q)
}

func (b *relayedBackend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return b.Relay.Watch(ctx, q)
}

func (b *relayedBackend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	o, err := b.origin.Commit(ctx, c)
	if err != nil {
		return nil, err
	}
	// A relay lags slightly behind its origin. Wait for the relay, because two cases would notice
	// the lag: they drain the server or compact the history right after a write.
	return o, awaitRelay(ctx, b.Relay, listwatch.Query{Start: listwatch.StartAt, Version: o.Version, Limit: 1, Match: listwatch.MatchNotOlderThan})
}

// awaitRelay repeats a list until r can serve q, because one list waits for at most three seconds.
func awaitRelay(ctx context.Context, r *relay.Relay, q listwatch.Query) error {
	for {
		_, err := r.List(ctx, q)
		if code := listwatch.CodeOf(err); code != listwatch.NotYet && code != listwatch.Unavailable || ctx.Err() != nil {
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
			DB: memory.Open(memory.Options{HistoryBytes: historyBytes}), depth: 1, t: t, options: relay.Options{HistoryBytes: historyBytes},
		}
	}, withoutWireCases())
}

func TestRelayOfURLIsASource(t *testing.T) {
	if testing.Short() || harness.RaceEnabled && !*all {
		t.Skip("slow; the in-process test covers most of it")
	}
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		return &relayedDatabase{
			DB: memory.Open(memory.Options{HistoryBytes: historyBytes}), depth: 1, t: t, overURL: true, options: relay.Options{HistoryBytes: historyBytes},
		}
	})
}
