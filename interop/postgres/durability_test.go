//go:build unix

package postgres

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

// With synchronous_commit=off, a crash of PostgreSQL undoes commits that were acknowledged, and
// later transactions use their versions again. The trigger prevents this for the table.
func TestCrashesUndoNoChangeThatWasSeen(t *testing.T) {
	server := pgtest.Start(t)
	pool := newTable(t, server, settings.Schema)
	// The process that flushes such commits must not get there first.
	for _, sql := range []string{`ALTER SYSTEM SET wal_writer_delay = '10s'`, `SELECT pg_reload_conf()`} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	config := pool.Config()
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	lazy, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lazy.Close)
	s := runSource(t, pool, watchcache.Options{})
	const crashes, commits = 5, 10
	for range crashes {
		load := startWriters(t, lazy)
		load.await(commits)
		awaitNewest(t, pool, s)
		server.Kill()
		server.Restart()
		load.await(commits)
		load.stop()
		awaitNewest(t, pool, s)
		wantTable(t, pool, s)
	}
}

// awaitNewest waits until the cache has the newest change of the table.
func awaitNewest(t *testing.T, pool *pgxpool.Pool, s *settings.Source) {
	t.Helper()
	begin := time.Now()
	var newest listwatch.Version
	// After a crash, the pool still has connections that fail.
	for err := errors.New(""); err != nil; {
		if err = pool.QueryRow(t.Context(), `SELECT max(version) FROM setting_changes`).Scan(&newest); err != nil &&
			time.Since(begin) > endTimeout {
			t.Fatal(err)
		}
	}
	err := s.Wait(t.Context(), newest)
	for errors.Is(err, listwatch.NotYet) && time.Since(begin) < endTimeout {
		err = s.Wait(t.Context(), newest)
	}
	if err != nil {
		t.Fatalf("the cache is at version %d and not at %d: %v", s.Version(), newest, err)
	}
}

// wantTable compares the objects of the cache with the rows of the table.
func wantTable(t *testing.T, pool *pgxpool.Pool, s *settings.Source) {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT object FROM setting_objects`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, row := range all {
		o, err := listwatch.ParseObject(row)
		if err != nil {
			t.Fatal(err)
		}
		want[o.Key.Name] = string(o.Data)
	}
	for _, o := range s.Objects() {
		got[o.Key.Name] = string(o.Data)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the cache differs from the table:\n got %q\nwant %q", got, want)
	}
}
