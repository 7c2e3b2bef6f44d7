//go:build unix

package logical

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
)

// typed creates a table with an enum and a composite.
var typed = []string{
	"CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE pair AS (x int, y int)",
	"CREATE TABLE typed (id int PRIMARY KEY, m mood, p pair[], n int)",
	"INSERT INTO typed VALUES (1, 'sad', ARRAY[(1, 2)]::pair[], 0)",
}

// A label of an enum that was renamed changes the text of old rows, without a change in the log.
func TestRenamedEnumLabelIsShown(t *testing.T) {
	d := newDatabase(t, typed...)
	db := d.open(postgres.Options{SchemaInterval: 20 * time.Millisecond}, postgres.Table{
		Name: "typed", Fields: []string{"spec.m"},
	})
	c := db.Table("typed", store.CollectionSpec{})
	d.exec("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
	d.await(func() error {
		if m := d.list(c)[0].Fields["spec.m"]; m != "low" {
			return fmt.Errorf("the row has the label %q, want low", m)
		}
		return nil
	})
	_, err := c.Patch(t.Context(), listwatch.Key{Name: "1"}, listwatch.Patch{
		Type: listwatch.MergePatch, Data: []byte(`{"spec":{"n":1}}`),
	})
	if err != nil {
		t.Error(err)
	}
}

// The log has rows of a changed composite type before the server has checked the schema. They are
// hidden until then.
func TestRowsOfAChangedTypeAreRead(t *testing.T) {
	d := newDatabase(t, typed...)
	source := d.open(postgres.Options{SchemaInterval: 20 * time.Millisecond}, postgres.Table{
		Name: "typed", Columns: []string{"p"},
	}).Source("typed")
	d.exec("ALTER TYPE pair ADD ATTRIBUTE z int", "INSERT INTO typed VALUES (2, 'ok', ARRAY[(1, 2, 3)]::pair[])")
	want := []string{`{"p":[{"x":1,"y":2,"z":null}]}`, `{"p":[{"x":1,"y":2,"z":3}]}`}
	d.await(func() error {
		page, err := source.List(t.Context(), listwatch.Query{})
		var got []string
		for _, o := range page.Items {
			got = append(got, spec(o))
		}
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
}

// After a change of the identity, the log identifies a deleted row by other columns.
func TestDeletesFollowAChangedIdentity(t *testing.T) {
	for _, statement := range []string{
		"ALTER TABLE a REPLICA IDENTITY USING INDEX a_code_key",
		"ALTER TABLE a DROP CONSTRAINT a_pkey, ADD PRIMARY KEY (code)",
	} {
		d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY, code text NOT NULL UNIQUE)",
			"INSERT INTO a VALUES (1, 'x'), (2, 'y')")
		source := d.open(postgres.Options{SchemaInterval: -1}, postgres.Table{Name: "a"}).Source("a")
		d.exec(statement, "DELETE FROM a WHERE id = 1")
		d.await(func() error {
			page, err := source.List(t.Context(), listwatch.Query{})
			if err == nil && (len(page.Items) != 1 || page.Items[0].Key.Name != "y") {
				t.Fatalf("%s: got %d rows, want the row y", statement, len(page.Items))
			}
			return err
		})
	}
}

// A query that an administrator cancels says nothing about the table.
func TestCanceledReadIsRepeated(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)",
		"CREATE TABLE b (id int PRIMARY KEY)")
	var canceling sync.WaitGroup
	defer canceling.Wait()
	reads := 0
	db := d.open(postgres.Options{Trace: &postgres.Trace{
		TableFailed: func(table string, reason error) { t.Errorf("table %s failed: %v", table, reason) },
	}}, postgres.Table{Name: "a", Verify: func(*listwatch.Object) error {
		if reads++; reads == 2 { // b is read after a, and waits for the lock
			d.exec("BEGIN", "LOCK TABLE b")
			canceling.Go(func() {
				d.awaitRow("SELECT FROM pg_locks WHERE NOT granted")
				d.exec("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted", "COMMIT")
			})
		}
		return nil
	}}, postgres.Table{Name: "b"})
	d.exec(killSenders)
	d.await(func() error {
		if loads := db.Stats().Loads; loads < 2 {
			return fmt.Errorf("the tables were read %d times, want 2", loads)
		}
		return db.Ready()
	})
}

// An error of SQL while a table is read fails this table only.
func TestUnreadableTableFailsAlone(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)",
		"CREATE PUBLICATION listwatch FOR TABLE a, b WHERE (10 / id > 0)")
	failed := make(chan string, 2)
	db := d.open(postgres.Options{Trace: &postgres.Trace{
		TableFailed: func(table string, _ error) { failed <- table },
	}}, postgres.Table{Name: "a"}, postgres.Table{Name: "b"})
	d.exec("INSERT INTO b VALUES (0)") // neither the log nor a query can evaluate the condition
	if table := <-failed; table != "b" {
		t.Errorf("table %s failed, want b", table)
	}
	d.exec("INSERT INTO a VALUES (1)")
	d.await(func() error {
		page, err := db.Source("a").List(t.Context(), listwatch.Query{})
		if err == nil && len(page.Items) != 1 {
			t.Fatalf("the other table has %d rows, want 1", len(page.Items))
		}
		return errors.Join(err, db.Ready())
	})
	if loads := db.Stats().Loads; loads != 2 {
		t.Errorf("the tables were read %d times, want 2", loads)
	}
	get(t, db.Source("b"), http.StatusServiceUnavailable)
}

// Names may contain any character.
func TestNamesAreQuoted(t *testing.T) {
	const name = `"t""%d'"`
	d := newDatabase(t, `CREATE TABLE `+name+` (id int PRIMARY KEY, "c""%s'" text, "n.%" text)`)
	db := d.open(postgres.Options{Publication: `p%s"'`}, postgres.Table{Name: name, Kind: "Odd"})
	c := db.Table(name, store.CollectionSpec{})
	o := testkit.Must(c.Create(t.Context(), []byte(
		`{"metadata":{"name":"1"},"spec":{"c\"%s'":"x","n.%":"l"}}`)))(t)
	if got, want := spec(o), `{"c\"%s'":"x","id":1,"n.%":"l"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"1"}}`)); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("the name again: got %v, want AlreadyExists", err)
	}
}

// PostgreSQL may close connections that are idle. The next read opens another one.
func TestClosedIdleConnectionsAreReplaced(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)",
		"ALTER DATABASE postgres SET idle_session_timeout = '1100ms'")
	source := d.open(postgres.Options{SchemaInterval: -1}, postgres.Table{Name: "a"}).Source("a")
	d.list(source)
	d.awaitRow("SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity " +
		"WHERE application_name = 'listwatch' AND backend_type <> 'walsender')")
	d.list(source)
}

// The settings of a role or a database change the text of values, and limit queries. They have no
// effect.
func TestSettingsOfTheDatabaseHaveNoEffect(t *testing.T) {
	d := newDatabase(t, `CREATE TABLE a (id int PRIMARY KEY, at timestamptz, took interval, raw bytea, part float8,
		tags text[])`, "CREATE TABLE long AS SELECT generate_series(1, 100000) AS id",
		"ALTER TABLE long ADD PRIMARY KEY (id)")
	const row = `'2026-01-02 03:04:05Z', '1 day 2 hours', '\x00ff', 0.1::float8 + 0.2, '{a,NULL}')`
	d.exec("INSERT INTO a VALUES (1, " + row)
	for _, setting := range []string{
		"timezone = 'Asia/Tokyo'", "datestyle = 'German'", "intervalstyle = 'iso_8601'", "bytea_output = 'escape'",
		"extra_float_digits = 0", "array_nulls = off", "statement_timeout = '5ms'", "lock_timeout = '1ms'",
	} {
		d.exec("ALTER DATABASE postgres SET " + setting)
	}
	c := d.open(postgres.Options{}, postgres.Table{Name: "a"}, postgres.Table{Name: "long"}).
		Table("a", store.CollectionSpec{})
	d.exec("INSERT INTO a VALUES (2, " + row)
	testkit.Must(c.Create(t.Context(), []byte(`{"spec":{"id":3,"tags":["a",null],"took":"P1DT2H","raw":"\\x00ff",
		"part":0.30000000000000004,"at":"2026-01-02T03:04:05Z"}}`)))(t)
	for i, o := range d.list(c) {
		want := fmt.Sprintf(`{"at":"2026-01-02T03:04:05+00:00","id":%d,"part":0.30000000000000004,"raw":"\\x00ff",`+
			`"tags":["a",null],"took":"1 day 02:00:00"}`, i+1)
		if got := spec(o); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A definition may change between two changes of a transaction.
func TestTransactionsMayChangeTheDefinition(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)")
	source := d.open(postgres.Options{SchemaInterval: -1}, postgres.Table{Name: "a"}).Source("a")
	d.exec("BEGIN", "INSERT INTO a VALUES (1)", "ALTER TABLE a ADD COLUMN n int DEFAULT 7",
		"INSERT INTO a VALUES (2, 8)", "COMMIT")
	d.await(func() error {
		page, err := source.List(t.Context(), listwatch.Query{})
		var got []string
		for _, o := range page.Items {
			got = append(got, spec(o))
		}
		if want := []string{`{"id":1,"n":7}`, `{"id":2,"n":8}`}; err == nil && !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		return err
	})
}
