//go:build unix

package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

// newTable creates the table in a schema of its own, with one row, and makes it watchable.
func newTable(t *testing.T, server *pgtest.Server, schema string) *pgxpool.Pool {
	t.Helper()
	url, err := server.CreateSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const row = `; INSERT INTO settings (namespace, name, spec) VALUES ('default', 'old', '{}')`
	return openTable(t, url, table+row, schema)
}

func nextEvent(t *testing.T, w listwatch.Watcher) (listwatch.Event, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), endTimeout)
	defer cancel()
	var events [1]listwatch.Event
	_, err := w.Next(ctx, events[:])
	return events[0], err
}

func watchFrom(t *testing.T, s listwatch.Source, v listwatch.Version) listwatch.Watcher {
	t.Helper()
	return testkit.Watch(t, s, listwatch.Query{Start: listwatch.StartAt, Version: v})
}

func TestExistingRowsAreAtVersionOne(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	s := runSource(t, pool, watchcache.Options{})
	page, err := s.List(t.Context(), listwatch.Query{})
	if err != nil || page.Version != 1 || len(page.Items) != 1 || page.Items[0].Version != 1 {
		t.Fatalf("got %+v, %v; want one object, and version 1", page, err)
	}
	w := watchFrom(t, s, 1)
	if _, err := pool.Exec(t.Context(), `DELETE FROM settings`); err != nil {
		t.Fatal(err)
	}
	if e, err := nextEvent(t, w); err != nil || e.Type != listwatch.Deleted || e.Version != 2 {
		t.Errorf("got %s at version %d, %v; want DELETED at version 2", e.Type, e.Version, err)
	}
}

func TestChangesAreReadWithoutNotifications(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), strings.ReplaceAll(settings.Schema, "PERFORM pg_notify", "PERFORM concat"))
	w := watchFrom(t, runSource(t, pool, watchcache.Options{}), 1)
	if _, err := pool.Exec(t.Context(), `UPDATE settings SET spec = '{"n":1}'`); err != nil {
		t.Fatal(err)
	}
	if e, err := nextEvent(t, w); err != nil || e.Type != listwatch.Modified {
		t.Errorf("got %s, %v; want MODIFIED", e.Type, err)
	}
}

// One transaction writes and prunes, so that the Source cannot read the first change.
func TestPrunedChangesExpireWatches(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	s := runSource(t, pool, watchcache.Options{})
	w := watchFrom(t, s, 1)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE settings SET spec = '{"n":1}'; UPDATE settings SET spec = '{"n":2}';
			SET CONSTRAINTS ALL IMMEDIATE; SELECT prune_setting_changes('-1 hour')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := nextEvent(t, w); !errors.Is(err, listwatch.Expired) {
		t.Errorf("got %v, %v; want Expired", e, err)
	}
	if page, err := s.List(t.Context(), listwatch.Query{}); err != nil || page.Version != 3 ||
		page.Items[0].Version != 3 {
		t.Errorf("listed %+v, %v; want the object at version 3", page, err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM settings`); err != nil {
		t.Fatal(err)
	}
	if e, err := nextEvent(t, watchFrom(t, s, 3)); err != nil || e.Type != listwatch.Deleted {
		t.Errorf("got %s, %v; want DELETED", e.Type, err)
	}
}

func TestUnsupportedStatementsFail(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	for sql, want := range map[string]string{
		`TRUNCATE settings`:                "cannot be truncated",
		`UPDATE settings SET name = 'new'`: "cannot be renamed",
		`INSERT INTO settings VALUES (DEFAULT, 'default', '', '{}', '{}')`: "settings_are_objects",
		`UPDATE settings SET labels = '[]'`:                                "settings_are_objects",
		`UPDATE settings SET labels = '{"replicas":3}'`:                    "settings_are_objects",
		`UPDATE settings SET labels = '{"zones":["a"]}'`:                   "settings_are_objects",
		`BEGIN; DELETE FROM settings; PREPARE TRANSACTION 'a'`:             "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY",
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", sql, err, want)
		}
	}
}

func TestTemporaryTablesHideNoTable(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	_, err := pool.Exec(t.Context(), `CREATE TEMP TABLE setting_versions (LIKE setting_versions) ON COMMIT DROP;
		CREATE TEMP TABLE setting_changes (LIKE setting_changes) ON COMMIT DROP; UPDATE settings SET spec = '{"n":1}'`)
	if err != nil {
		t.Fatal(err)
	}
	var newest listwatch.Version
	if err := pool.QueryRow(t.Context(), `SELECT max(version) FROM setting_changes`).Scan(&newest); err != nil ||
		newest != 2 {
		t.Errorf("after a change the newest version is %d, %v; want 2", newest, err)
	}
}

// A transaction that is rolled back after it has taken a version leaves a gap in the versions.
func TestWatchesResumeBeforeAGap(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	const update = `UPDATE settings SET spec = '{"n":1}';`
	for _, sql := range []string{`BEGIN;` + update + `SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK`, update} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w := watchFrom(t, runSource(t, pool, watchcache.Options{}), 1)
	if e, err := nextEvent(t, w); err != nil || e.Type != listwatch.Modified || e.Version != 3 {
		t.Errorf("got %s at version %d, %v; want MODIFIED at version 3", e.Type, e.Version, err)
	}
}

// If the database is replaced, Run must end, so that the program starts again with the state and
// the epoch of the new database.
func TestReplacedDatabaseEndsTheSource(t *testing.T) {
	for name, replace := range map[string]func(*pgtest.Server, *pgxpool.Pool) error{
		"an older table": func(_ *pgtest.Server, pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(),
				`DELETE FROM setting_changes WHERE version > 1; NOTIFY setting_changes, 'restored'`)
			return err
		},
		"another JSON": func(_ *pgtest.Server, pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(), `CREATE OR REPLACE FUNCTION setting_object(s settings, version bigint) RETURNS json LANGUAGE sql
				BEGIN ATOMIC SELECT json_build_object('metadata', json_build_object('name', s.name, 'namespace', s.namespace,
				'resourceVersion', version::text), 'priority', 3); END; NOTIFY setting_changes, 'changed'`)
			return err
		},
		"a promotion": func(server *pgtest.Server, _ *pgxpool.Pool) error { return server.Promote(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			server := pgtest.Start(t)
			pool := newTable(t, server, settings.Schema)
			if _, err := pool.Exec(t.Context(), `UPDATE settings SET spec = '{"n":1}'`); err != nil {
				t.Fatal(err)
			}
			s, ended := runUntilReplaced(t, pool)
			awaitNewest(t, pool, s)
			if err := replace(server, pool); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "the database was replaced") {
				t.Errorf("Run returned %v, want that the database was replaced", err)
			}
			if name == "an older table" {
				return // nothing in the database shows it
			}
			pool.Reset() // its connections may have ended
			if again, err := settings.New(t.Context(), pool, watchcache.Options{}); err != nil ||
				again.Describe().Epoch == s.Describe().Epoch {
				t.Errorf("a new Source has the same epoch, %s, %v", s.Describe().Epoch, err)
			}
		})
	}
}

// People copy the adapter, so it must stay short.
func TestAdapterIsShort(t *testing.T) {
	const limit = 300
	n := 0
	texts := []string{settings.Schema}
	for _, name := range []string{"settings.go", "read.go"} {
		source, err := os.ReadFile("../../examples/postgres/settings/" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(source))
	}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "--") {
				n++
			}
		}
	}
	if n > limit {
		t.Errorf("the adapter has %d lines of code, want at most %d", n, limit)
	}
	t.Logf("%d lines of code", n)
}
