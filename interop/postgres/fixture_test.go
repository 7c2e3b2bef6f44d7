//go:build unix

package postgres

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/watchcache"
)

// table creates an application's table, which is not watchable yet.
const table = `CREATE TABLE settings (
	id bigint GENERATED ALWAYS AS IDENTITY, namespace text, name text, labels jsonb NOT NULL DEFAULT '{}', spec json NOT NULL,
	PRIMARY KEY (namespace, name))`

// openTable executes statements in a database and returns a pool of connections to it.
func openTable(t conformance.T, url string, statements ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// runSource returns a Source of the table, which reads changes until the end of the test.
func runSource(t conformance.T, pool *pgxpool.Pool, o watchcache.Options) *settings.Source {
	t.Helper()
	s, err := settings.New(t.Context(), pool, o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s
}

// run runs a Source until the end of the test.
func run(t conformance.T, s *settings.Source) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // returns the error of ctx
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// runUntilReplaced returns a Source of the table that reads changes, and the result of its Run.
func runUntilReplaced(t *testing.T, pool *pgxpool.Pool) (*settings.Source, <-chan error) {
	t.Helper()
	s, err := settings.New(t.Context(), pool, watchcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		ended <- s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return s, ended
}

// A writer writes settings with SQL.
type writer struct{ pool *pgxpool.Pool }

// write writes an object in a transaction of its own, or deletes it if data is nil. It returns the
// version of the change.
func (w writer) write(ctx context.Context, key listwatch.Key, data []byte) (v listwatch.Version, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := put(ctx, tx, key, data); err != nil {
			return err
		}
		// Run the trigger now and not at the commit, so that the version is known.
		if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT max(version) FROM setting_changes`).Scan(&v)
	})
	return v, err
}

// put writes or deletes an object.
func put(ctx context.Context, tx pgx.Tx, key listwatch.Key, data []byte) error {
	if data == nil {
		_, err := tx.Exec(ctx, `DELETE FROM settings WHERE (namespace, name) = ($1, $2)`, key.Namespace, key.Name)
		return err
	}
	var o struct {
		Metadata struct{ Labels map[string]string }
		Spec     json.RawMessage
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	if o.Metadata.Labels == nil {
		o.Metadata.Labels = map[string]string{}
	}
	if o.Spec == nil {
		o.Spec = json.RawMessage("{}")
	}
	_, err := tx.Exec(ctx, `INSERT INTO settings (namespace, name, labels, spec) VALUES ($1, $2, $3, $4)
		ON CONFLICT (namespace, name) DO UPDATE SET labels = EXCLUDED.labels, spec = EXCLUDED.spec`,
		key.Namespace, key.Name, o.Metadata.Labels, string(o.Spec))
	return err
}
