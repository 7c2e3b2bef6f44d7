//go:build unix

package postgres

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

func execute(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// events returns the next n events after version v, as text.
func events(t *testing.T, s listwatch.Source, v listwatch.Version, n int) (all []string) {
	t.Helper()
	w := watchFrom(t, s, v)
	for len(all) < n {
		e, err := nextEvent(t, w)
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		_, spec, _ := strings.Cut(string(e.Object.Data), `"spec":`)
		all = append(all, fmt.Sprint(e.Type, " ", e.Object.Key.Name, " ", spec))
	}
	return all
}

// PostgreSQL accepts JSON that is nested more deeply than an object may be.
func TestARowThatIsNoObjectDoesNotStopTheFeed(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	const deep = `(repeat('[', 10100) || repeat(']', 10100))::json`
	pool := newTable(t, pgtest.Start(t), `UPDATE settings SET spec = `+deep+`;`+settings.Schema)
	first := runSource(t, pool, watchcache.Options{})
	awaitNewest(t, pool, first)
	execute(
		t, pool,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'deep', `+deep+`)`,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'a', '1')`,
		`UPDATE settings SET spec = `+deep+` WHERE name = 'a'`,
		`UPDATE settings SET spec = '2' WHERE name = 'a'`,
		`INSERT INTO settings (namespace, name, spec) VALUES ('n', 'b', '3')`,
	)
	want := []string{"ADDED a 1}", "DELETED a 1}", "ADDED a 2}", "ADDED b 3}"}
	if got := events(t, first, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	restarted := runSource(t, pool, watchcache.Options{})
	awaitNewest(t, pool, restarted)
	if got := events(t, restarted, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("after a restart: got %q, want %q", got, want)
	}
	for _, s := range []*settings.Source{first, restarted} {
		if page, err := s.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 2 {
			t.Errorf("got %d objects, %v, want 2", len(page.Items), err)
		}
	}
	for _, row := range []string{"default/old", "n/deep", "n/a"} {
		// Each Source logs it once.
		if got := strings.Count(logged.String(), "the row "+row+" is no object"); got != 2 {
			t.Errorf("row %s was logged %d times, want 2:\n%s", row, got, logged.Bytes())
		}
	}
}

func TestReplicasAreWriters(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	s := runSource(t, pool, watchcache.Options{})
	awaitNewest(t, pool, s)
	execute(t, pool, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE settings SET spec = '1'; COMMIT`)
	if got, want := events(t, s, 1, 1), []string{"MODIFIED old 1}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err := pool.Exec(t.Context(), `BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE settings; COMMIT`)
	if err == nil {
		t.Error("TRUNCATE: got no error")
	}
}

// Changes that are not recorded would be missed without an error.
func TestLostTriggersFailReads(t *testing.T) {
	server := pgtest.Start(t)
	for _, sql := range []string{
		`ALTER TABLE settings DISABLE TRIGGER ALL`,
		// The triggers are no longer ALWAYS.
		`ALTER TABLE settings DISABLE TRIGGER ALL; ALTER TABLE settings ENABLE TRIGGER ALL`,
		`DROP TRIGGER record_change ON settings`,
		`DROP TRIGGER refuse_truncate ON settings`,
		`CREATE TABLE other (LIKE settings INCLUDING ALL); INSERT INTO other OVERRIDING SYSTEM VALUE SELECT * FROM settings;
			ALTER TABLE settings RENAME TO old; ALTER TABLE other RENAME TO settings`,
		`DROP TABLE settings CASCADE; ` + table +
			`; INSERT INTO settings (namespace, name, spec) VALUES ('default', 'old', '1')`,
	} {
		t.Run(sql, func(t *testing.T) {
			pool := newTable(t, server, settings.Schema)
			s, ended := runUntilReplaced(t, pool)
			awaitNewest(t, pool, s)
			execute(t, pool, sql)
			if _, err := settings.New(t.Context(), pool, watchcache.Options{}); err == nil {
				t.Error("New: got no error")
			}
			if _, err := s.List(t.Context(), listwatch.Query{}); err == nil ||
				!strings.Contains(err.Error(), "install schema.sql again") {
				t.Errorf("list: got %v, want an error", err)
			}
			execute(t, pool, `UPDATE settings SET spec = '7'`, settings.Schema, `NOTIFY setting_changes, 'installed'`)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "start the program again") {
				t.Errorf("Run returned %v, want that the program must start again", err)
			}
			again := runSource(t, pool, watchcache.Options{})
			if page, err := again.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 1 ||
				!bytes.Contains(page.Items[0].Data, []byte(`"spec":7`)) {
				t.Errorf("after a new installation: got %+v, %v", page, err)
			}
			if old, now := s.Describe().Epoch, again.Describe().Epoch; old == now {
				t.Errorf("a new installation has the same epoch, %s", now)
			}
		})
	}
}

func TestOldChangesAreDropped(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	execute(t, pool, `UPDATE settings SET spec = '1'`, `UPDATE settings SET spec = '2'`,
		`UPDATE setting_changes SET at = now() - interval '2 hours'`)
	runSource(t, pool, watchcache.Options{History: listwatch.Retention{Age: time.Hour}})
	begin := time.Now()
	for n := 0; n != 1; {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM setting_changes`).Scan(&n); err != nil ||
			time.Since(begin) > endTimeout {
			t.Fatalf("the table has %d changes, %v, want 1", n, err)
		}
	}
}

// A column that the JSON needs cannot be dropped or get another type: before, these statements
// succeeded, and then every write to the table failed.
func TestColumnsOfTheObjectAreProtected(t *testing.T) {
	pool := newTable(t, pgtest.Start(t), `ALTER TABLE settings ADD COLUMN note text;`+settings.Schema)
	s := runSource(t, pool, watchcache.Options{})
	awaitNewest(t, pool, s)
	for _, sql := range []string{
		`ALTER TABLE settings DROP COLUMN spec`, `ALTER TABLE settings DROP COLUMN labels`,
		`ALTER TABLE settings DROP COLUMN id`,
		`ALTER TABLE settings DROP COLUMN name`, `ALTER TABLE settings DROP COLUMN namespace`,
		`ALTER TABLE settings ALTER COLUMN spec TYPE jsonb USING spec::jsonb`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "cannot ") {
			t.Errorf("%s: got %v, want an error", sql, err)
		}
	}
	execute(
		t, pool, `ALTER TABLE settings DROP COLUMN note`, `ALTER TABLE settings ADD COLUMN comment text`,
		`ALTER TABLE settings RENAME COLUMN name TO title`, `ALTER TABLE settings RENAME COLUMN spec TO body`,
		`UPDATE settings SET body = '1'`, `INSERT INTO settings (namespace, title, body) VALUES ('n', 'a', '2')`,
		`DELETE FROM settings WHERE title = 'a'`,
	)
	want := []string{"MODIFIED old 1}", "ADDED a 2}", "DELETED a 2}"}
	if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	restarted := runSource(t, pool, watchcache.Options{})
	awaitNewest(t, pool, restarted)
	wantTable(t, pool, restarted)
	if old, now := s.Describe().Epoch, restarted.Describe().Epoch; old != now {
		t.Errorf("the epoch changed from %s to %s, although the JSON is the same", old, now)
	}
}
