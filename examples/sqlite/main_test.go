package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/examples/sqlite/settings"
	"github.com/listwatch/listwatch/watchcache"
)

// table creates an application's table, which is not watchable yet.
const table = `CREATE TABLE settings (
	id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, name TEXT NOT NULL,
	labels TEXT NOT NULL DEFAULT '{}', spec TEXT NOT NULL, UNIQUE (namespace, name))`

// openTable executes statements in a database and returns a pool of connections to it.
func openTable(t conformance.T, file string, statements ...string) *sql.DB {
	t.Helper()
	// No test stops the machine, so the flushes of each commit would only take time.
	db, err := sql.Open("sqlite", strings.Replace(dataSource(file), "(FULL)", "(OFF)", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// start returns a Source of the table, and a function that ends it.
func start(t conformance.T, db *sql.DB, o watchcache.Options) (s *settings.Source, stop func()) {
	t.Helper()
	s, err := settings.New(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // returns the error of ctx
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return s, stop
}

// A writer is a program that writes settings with one connection and prepared statements. Compiling
// the triggers for each write would take most of the time of the tests.
type writer struct {
	db                  *sql.DB
	put, remove, newest func() (*sql.Stmt, error)
}

func newWriter(db *sql.DB) writer {
	db.SetMaxOpenConns(1)
	// The statements end with db.
	prepare := func(query string) func() (*sql.Stmt, error) {
		return sync.OnceValues(func() (*sql.Stmt, error) { return db.Prepare(query) })
	}
	return writer{
		db: db,
		put: prepare(`INSERT INTO settings (namespace, name, labels, spec) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET labels = excluded.labels, spec = excluded.spec`),
		remove: prepare(`DELETE FROM settings WHERE (namespace, name) = (?, ?)`),
		newest: prepare(`SELECT max(version) FROM setting_changes`),
	}
}

// write writes an object, or deletes it if data is nil. It returns the version of the change.
func (w writer) write(ctx context.Context, key listwatch.Key, data []byte) (v listwatch.Version, err error) {
	statement, args := w.remove, []any{key.Namespace, key.Name}
	if data != nil {
		var o struct {
			Metadata struct{ Labels json.RawMessage }
			Spec     json.RawMessage
		}
		if err := json.Unmarshal(data, &o); err != nil {
			return 0, err
		}
		if o.Metadata.Labels == nil {
			o.Metadata.Labels = json.RawMessage("{}")
		}
		if o.Spec == nil {
			o.Spec = json.RawMessage("{}")
		}
		statement, args = w.put, append(args, string(o.Metadata.Labels), string(o.Spec))
	}
	// The statements are prepared before the transaction takes the only connection.
	change, err := statement()
	if err != nil {
		return 0, err
	}
	newest, err := w.newest()
	if err != nil {
		return 0, err
	}
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // without effect after the commit
	if _, err := tx.StmtContext(ctx, change).ExecContext(ctx, args...); err != nil {
		return 0, err
	}
	if err := tx.StmtContext(ctx, newest).QueryRowContext(ctx).Scan(&v); err != nil {
		return 0, err
	}
	return v, tx.Commit()
}

func TestTableIsASource(t *testing.T) {
	if raceEnabled {
		t.Skip("make test runs the suite without the race detector, which would watch SQLite most of the time")
	}
	// A copy of an empty table takes less time than the schema.
	file := filepath.Join(t.TempDir(), "empty.db")
	if err := openTable(t, file, table, settings.Schema).Close(); err != nil {
		t.Fatal(err)
	}
	// Closing the last connection moved the write-ahead log into the file.
	empty, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	conformance.TestReadOnlySource(t, func(ct conformance.T, historyBytes int64) conformance.ReadOnlySource {
		n++
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n))
		if err := os.WriteFile(file, empty, 0o666); err != nil {
			ct.Fatal(err)
		}
		db := openTable(ct, file, `UPDATE setting_epoch SET epoch = lower(hex(randomblob(8)))`)
		s, _ := start(ct, db, watchcache.Options{History: listwatch.Retention{Bytes: historyBytes}})
		return conformance.ReadOnlySource{Source: s, Compact: s.Compact, Write: newWriter(openTable(ct, file)).write}
	}, conformance.Exceptions{
		"resume/server-restart": "the case loses its data: a new table starts at version 1, and its database has another epoch",
	})
}

// Two programs write at the same time, and the server restarts. The watcher must see all changes.
func TestWatcherSeesWritesOfAllPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.db")
	db := openTable(t, file, table, settings.Schema)
	s, stop := start(t, db, watchcache.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := newWriter(openTable(t, file)).write(ctx, listwatch.Key{Namespace: "n", Name: "before"},
		[]byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	page, err := s.List(ctx, listwatch.Query{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("got %d objects, %v, want 1", len(page.Items), err)
	}
	const programs, writes = 2, 50
	var writing sync.WaitGroup
	begun := make(chan struct{}, programs*writes)
	for p := range programs {
		other := newWriter(openTable(t, file))
		writing.Go(func() {
			for n := range writes {
				data := fmt.Appendf(nil, `{"spec":{"n":%d}}`, n)
				if _, err := other.write(ctx, listwatch.Key{Namespace: "n", Name: fmt.Sprint(p)}, data); err != nil {
					t.Error(err)
				}
				begun <- struct{}{}
			}
		})
	}
	for range writes / 5 {
		<-begun
	}
	stop()
	s, _ = start(t, db, watchcache.Options{})
	// The history is in the table, so the watch resumes although the cache is new.
	w, err := s.Watch(ctx, listwatch.Query{Start: listwatch.StartAt, Version: page.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := map[string]int{}
	seen := 0
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			t.Fatal(err)
		}
		name := e.Object.Key.Name
		if want := fmt.Sprintf(`"spec":{"n":%d}`, next[name]); !strings.Contains(string(e.Object.Data), want) {
			t.Fatalf("got %s, want %s", e.Object.Data, want)
		}
		next[name]++
		if seen++; seen == programs*writes {
			break
		}
	}
	writing.Wait()
}

func TestInvalidWritesAreRefused(t *testing.T) {
	db := openTable(t, filepath.Join(t.TempDir(), "settings.db"), table,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'old', '{"a": 18446744073709551616}')`,
		settings.Schema)
	for _, statement := range []string{
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', '', '{}')`,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', 'x')`,
		`INSERT INTO settings (namespace, name, labels, spec) VALUES ('n', 'a', '[]', '{}')`,
		`INSERT INTO settings (namespace, name, labels, spec) VALUES ('n', 'a', '{"a":1}', '{}')`,
		`UPDATE settings SET labels = '{"a":1}'`,
		`UPDATE settings SET spec = 'x'`,
		`UPDATE settings SET name = 'new'`,
		`REPLACE INTO settings (namespace, name, spec) VALUES ('n', 'old', '{}')`,
		`INSERT OR REPLACE INTO settings (id, namespace, name, spec) VALUES (1, 'n', 'b', '{}')`,
		`UPDATE settings SET id = 7`,
		`UPDATE OR REPLACE settings SET id = 7`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: got no error", statement)
		}
	}
	s, stop := start(t, db, watchcache.Options{})
	page, err := s.List(t.Context(), listwatch.Query{})
	if err != nil || len(page.Items) != 1 ||
		!strings.Contains(string(page.Items[0].Data), `"spec":{"a":18446744073709551616}`) {
		t.Errorf("got %+v, %v, want only the row that was there before", page, err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE setting_epoch SET epoch = 'other'`); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := s.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("another epoch: got %v, want an error", err)
	}
}
