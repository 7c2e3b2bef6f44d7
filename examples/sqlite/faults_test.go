package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"

	"github.com/listwatch/listwatch/examples/sqlite/settings"
)

// events returns the next n events after version v, as text.
func events(t *testing.T, s listwatch.Source, v listwatch.Version, n int) (all []string) {
	t.Helper()
	w, err := s.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: v})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		_, spec, _ := strings.Cut(string(e.Object.Data), `"spec":`)
		if all = append(all, fmt.Sprint(e.Type, " ", e.Object.Key.Name, " ", spec)); len(all) == n {
			break
		}
	}
	return all
}

// Triggers of the application write to the row that is being written. SQLite runs newer triggers
// first.
func TestTriggersOfTheApplicationLoseNoChange(t *testing.T) {
	for name, test := range map[string]struct {
		trigger, statement string
		want               []string
	}{
		"update": {
			`AFTER UPDATE ON settings WHEN NEW.spec = '1' BEGIN UPDATE settings SET spec = '2' WHERE id = NEW.id; END`,
			`UPDATE settings SET spec = '1'`,
			[]string{"MODIFIED a 1}", "MODIFIED a 2}"},
		},
		"delete": {
			`AFTER UPDATE ON settings WHEN NEW.spec = '1' BEGIN DELETE FROM settings WHERE id = NEW.id; END`,
			`UPDATE settings SET spec = '1'`,
			[]string{"MODIFIED a 1}", "DELETED a 1}"},
		},
		"insert": {
			`AFTER INSERT ON settings BEGIN UPDATE settings SET spec = '2' WHERE id = NEW.id; END`,
			`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'b', '1')`,
			[]string{"ADDED b 2}"},
		},
		"insert and delete": {
			`AFTER INSERT ON settings WHEN NEW.spec = '1' BEGIN DELETE FROM settings WHERE id = NEW.id; END`,
			`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'b', '1'); INSERT INTO settings (namespace, name, spec) VALUES ('n', 'b', '3')`,
			[]string{"ADDED b 3}"},
		},
	} {
		for order, statements := range map[string][]string{
			"newer": {settings.Schema, "CREATE TRIGGER theirs " + test.trigger},
			"older": {"CREATE TRIGGER theirs " + test.trigger, settings.Schema},
		} {
			t.Run(name+" by a trigger that is "+order, func(t *testing.T) {
				const row = `INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', '0')`
				db := openTable(t, filepath.Join(t.TempDir(), "settings.db"),
					append([]string{table, row}, statements...)...)
				s, stop := start(t, db, watchcache.Options{})
				if err := s.Wait(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), test.statement); err != nil {
					t.Fatal(err)
				}
				want := test.want
				if order == "older" && name == "insert" {
					want = []string{"ADDED b 1}", "MODIFIED b 2}"}
				}
				if order == "older" && name == "insert and delete" {
					want = []string{"ADDED b 1}", "DELETED b 1}", "ADDED b 3}"}
				}
				if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				before, err := s.List(t.Context(), listwatch.Query{})
				if err != nil {
					t.Fatal(err)
				}
				stop()
				s, _ = start(t, db, watchcache.Options{})
				if page, err := s.List(t.Context(), listwatch.Query{}); err != nil ||
					len(page.Items) != len(before.Items) {
					t.Errorf("after a restart: got %d objects, %v, want %d", len(page.Items), err, len(before.Items))
				}
				if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
					t.Errorf("after a restart: got %q, want %q", got, want)
				}
			})
		}
	}
}

// Latin-1 in TEXT is common. SQLite does not check text.
func TestARowThatIsNoObjectDoesNotStopTheFeed(t *testing.T) {
	db := openTable(t, filepath.Join(t.TempDir(), "settings.db"), table,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'before', json_quote(CAST(x'e9' AS TEXT)))`,
		settings.Schema)
	s, stop := start(t, db, watchcache.Options{})
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', CAST(x'e9' AS TEXT), '{}')`,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', '1')`,
		`UPDATE settings SET spec = CAST(x'22e922' AS TEXT) WHERE name = 'a'`,
		`UPDATE settings SET spec = '2' WHERE name = 'a'`,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'b', '3')`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"ADDED a 1}", "DELETED a 1}", "ADDED a 2}", "ADDED b 3}"}
	if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	stop()
	s, _ = start(t, db, watchcache.Options{})
	if page, err := s.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 2 {
		t.Errorf("after a restart: got %d objects, %v, want 2", len(page.Items), err)
	}
	if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("after a restart: got %q, want %q", got, want)
	}
}

// A change of the table by a copy, as SQLite's manual describes it, drops the triggers.
func TestLostTriggersFailReads(t *testing.T) {
	db := openTable(t, filepath.Join(t.TempDir(), "settings.db"), table, settings.Schema)
	s, _ := start(t, db, watchcache.Options{})
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `DROP TRIGGER setting_updated`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), listwatch.Query{}); err == nil ||
		!strings.Contains(err.Error(), "has lost its triggers") {
		t.Errorf("got %v, want an error", err)
	}
}

// If the JSON of objects changes without a change of their version, clients that resume keep the
// old JSON unless the epoch changes.
func TestAnotherJSONChangesTheEpoch(t *testing.T) {
	for name, statement := range map[string]string{
		"view": `ALTER TABLE settings ADD COLUMN priority; DROP VIEW setting_objects;
			CREATE VIEW setting_objects AS SELECT namespace, name, json_object('metadata',
			json_object('name', name, 'namespace', namespace), 'priority', priority) AS object FROM settings`,
		"new installation": `DROP TRIGGER setting_updated; UPDATE settings SET spec = '7'; ` + settings.Schema,
	} {
		t.Run(name, func(t *testing.T) {
			db := openTable(t, filepath.Join(t.TempDir(), "settings.db"), table, settings.Schema,
				`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', '1')`)
			s, err := settings.New(t.Context(), db, watchcache.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(t.Context()) }()
			if err := s.Wait(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "start the program again") {
				t.Errorf("Run returned %v, want that the program must start again", err)
			}
			again, _ := start(t, db, watchcache.Options{})
			if old, now := s.Describe().Epoch, again.Describe().Epoch; old == now {
				t.Errorf("the epoch is still %s", old)
			}
			if page, err := again.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 1 {
				t.Errorf("after a restart: got %+v, %v, want one object", page, err)
			}
		})
	}
}

func TestOldChangesAreDropped(t *testing.T) {
	db := openTable(t, filepath.Join(t.TempDir(), "settings.db"), table, settings.Schema,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', '1'); UPDATE settings SET spec = '2'; UPDATE setting_changes SET at = 1`)
	_, _ = start(t, db, watchcache.Options{History: listwatch.Retention{Age: time.Hour}})
	for n := 0; n != 1; {
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM setting_changes`).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}
