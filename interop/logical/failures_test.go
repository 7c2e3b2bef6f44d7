//go:build unix

package logical

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// A table that cannot be served is refused before it is published. Otherwise, PostgreSQL would
// refuse the application's updates of a table without a key. The error contains the remedy.
func TestUnusableTablesAreRefused(t *testing.T) {
	d := newDatabase(t,
		"CREATE TABLE good (id int PRIMARY KEY, note text)",
		"CREATE TABLE keyless (id int)",
		"CREATE TABLE nothing (id int PRIMARY KEY)", "ALTER TABLE nothing REPLICA IDENTITY NOTHING",
		"CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
		"CREATE VIEW viewed AS SELECT * FROM good",
		"CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE child () INHERITS (parent)",
		"CREATE TABLE secured (id int PRIMARY KEY)", "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
		"CREATE TABLE secret (id int PRIMARY KEY)",
		"CREATE ROLE reader LOGIN REPLICATION", "GRANT SELECT ON good, keyless, secured TO reader",
		"CREATE ROLE outsider LOGIN", "CREATE SCHEMA hidden", "CREATE TABLE hidden.a (id int PRIMARY KEY)",
		"CREATE TABLE many (id int PRIMARY KEY)", "INSERT INTO many SELECT generate_series(1, 11)",
	)
	schema := d.url[strings.LastIndex(d.url, "=")+1:]
	d.exec(fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO reader, outsider", schema))
	asReader := strings.Replace(d.url, "user=postgres", "user=reader", 1)
	for _, tt := range []struct {
		name, url string
		table     postgres.Table
		want      string
	}{
		{"missing", d.url, postgres.Table{Name: "missing"}, "does not exist"},
		{"keyless", d.url, postgres.Table{Name: "keyless"}, "has no primary key"},
		{"nothing", d.url, postgres.Table{Name: "nothing"}, "REPLICA IDENTITY DEFAULT"},
		{"unlogged", d.url, postgres.Table{Name: "unlogged"}, "unlogged"},
		{"view", d.url, postgres.Table{Name: "viewed"}, "is no table"},
		{"inherited", d.url, postgres.Table{Name: "parent"}, "inherit"},
		{
			"no column", d.url,
			postgres.Table{Name: "good", Namespace: "tenant"},
			`no column "tenant", which Table.Namespace names`,
		},
		{
			"field of no column", d.url,
			postgres.Table{Name: "good", Fields: []string{"spec.nothing"}},
			`no column "nothing", which Table.Fields names`,
		},
		{"field without spec", d.url, postgres.Table{Name: "good", Fields: []string{"note"}}, "such as spec.note"},
		{"capitals", d.url, postgres.Table{Name: "Missing"}, `into quotes: "Missing"`},
		{"wrong type", d.url, postgres.Table{Name: "good", Spec: "note"}, "wrong type for Table.Spec"},
		{"not granted", asReader, postgres.Table{Name: "secret"}, `"secret" TO reader`},
		{"schema not granted", asReader, postgres.Table{Name: "hidden.a"}, `GRANT USAGE ON SCHEMA hidden TO "reader"`},
		{"row security", asReader, postgres.Table{Name: "secured"}, "BYPASSRLS"},
		{
			"not owner", asReader,
			postgres.Table{Name: "good"},
			"the owner of the tables can run this: CREATE PUBLICATION",
		},
		{
			"no replication", strings.Replace(d.url, "user=postgres", "user=outsider", 1),
			postgres.Table{Name: "good"},
			"REPLICATION",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), tt.url, postgres.Options{Publication: "mine"}, tt.table)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	_, err := postgres.Open(t.Context(), d.url, postgres.Options{}, postgres.Table{Name: "keyless"},
		postgres.Table{Name: "viewed"})
	text := fmt.Sprint(err)
	if !strings.Contains(text, `"keyless" has no primary key`) || !strings.Contains(text, `"viewed" is no table`) {
		t.Errorf("got %v, want the problems of both tables", err)
	}
	_, err = postgres.Open(t.Context(), d.url, postgres.Options{}, postgres.Table{Name: "good"},
		postgres.Table{Name: schema + ".good"})
	if err == nil || !strings.Contains(err.Error(), "named more than once") {
		t.Errorf("a table with two names: got %v", err)
	}
	_, err = postgres.Open(t.Context(), d.url, postgres.Options{MaxRows: 10}, postgres.Table{Name: "many"})
	if err == nil || !strings.Contains(err.Error(), "MaxRows") {
		t.Errorf("got %v, want the limit of rows", err)
	}
	d.exec("INSERT INTO keyless VALUES (1)", "UPDATE keyless SET id = 2")
}

// If a table is dropped, only this table fails, and its clients get no text from PostgreSQL.
func TestADroppedTableFailsAlone(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
	failed := make(chan string, 2)
	db := d.open(postgres.Options{SchemaInterval: 50 * time.Millisecond, Trace: &postgres.Trace{
		TableFailed: func(table string, _ error) { failed <- table },
	}}, postgres.Table{Name: "a"}, postgres.Table{Name: "b"})
	w, err := db.Source("b").Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.exec("DROP TABLE a")
	if table := <-failed; table != "a" {
		t.Errorf("table %s failed, want a", table)
	}
	d.exec("INSERT INTO b VALUES (1)")
	var batch [1]listwatch.Event
	if _, err := w.Next(t.Context(), batch[:]); err != nil || batch[0].Object.Key.Name != "1" {
		t.Errorf("got %v and %v, want the new row of the other table", batch[0], err)
	}
	if body := get(t, db.Source("a"), http.StatusServiceUnavailable); strings.Contains(body, "pg_") ||
		strings.Contains(body, "does not exist") {
		t.Errorf("a client gets %s", body)
	}
}

// A table that is rewritten or truncated after the snapshot and before it is read looks empty in
// the snapshot, and a column that was dropped cannot be read. Clients must not see that.
func TestRewrittenTablesAreReadAgain(t *testing.T) {
	for _, statement := range []string{
		"ALTER TABLE b ALTER n TYPE bigint", "ALTER TABLE b DROP n", "VACUUM FULL b",
		"TRUNCATE b; INSERT INTO b VALUES (2, 2)",
	} {
		d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)",
			"CREATE TABLE b (id int PRIMARY KEY, n int)", "INSERT INTO b VALUES (1, 1)")
		var once sync.Once
		db := d.open(postgres.Options{}, postgres.Table{Name: "a", Verify: func(*listwatch.Object) error {
			once.Do(func() { d.exec(statement) }) // a is read before b
			return nil
		}}, postgres.Table{Name: "b"})
		page, err := db.Source("b").List(t.Context(), listwatch.Query{Start: listwatch.StartAny})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%s: the first state has %d rows, %v, want 1", statement, len(page.Items), err)
		}
	}
}

// get returns the response of a server of a Source to a list.
func get(t *testing.T, s listwatch.Source, status int) string {
	t.Helper()
	server := httptest.NewServer(&watchserver.Server{Source: s})
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, status)
	}
	return string(body)
}

// While PostgreSQL is unavailable, reads of the newest state fail, without text from PostgreSQL in
// the error. Watches stay open. Afterwards, everything continues.
func TestReadsDoNotShowWhyTheDatabaseIsAway(t *testing.T) {
	d := newDatabase(t, orders, "INSERT INTO orders VALUES (1, 'acme')")
	db := d.open(postgres.Options{}, postgres.Table{Name: "orders"})
	w, err := db.Source("orders").Watch(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Version: db.Stats().Version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.server.Kill()
	body := get(t, db.Source("orders"), http.StatusServiceUnavailable)
	for _, secret := range []string{"postgres:", "user", "host", "/tmp", "socket", "connect", "SQLSTATE"} {
		if strings.Contains(strings.ReplaceAll(body, "serviceunavailable", ""), secret) {
			t.Errorf("a client gets %s, which has %q", body, secret)
		}
	}
	d.server.Restart()
	d.connect()
	d.exec("INSERT INTO orders VALUES (2, 'acme')")
	var batch [1]listwatch.Event
	if _, err := w.Next(t.Context(), batch[:]); err != nil || batch[0].Object.Key.Name != "2" {
		t.Errorf("got %v and %v, want the row that was inserted after the crash", batch[0], err)
	}
}

// A state that is requested right after a commit contains the commit, even if it is not flushed yet
// or if open transactions have written a part of the log.
func TestNewestStatesHaveAllCommits(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE big (x text)")
	source := d.open(postgres.Options{}, postgres.Table{Name: "a"}).Source("a")
	open, err := pgx.Connect(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close(context.Background()) }()
	d.exec("SET synchronous_commit = off")
	for i := range 30 {
		if _, err := open.Exec(t.Context(),
			fmt.Sprintf("BEGIN; INSERT INTO big VALUES (repeat('x', %d))", 100*i)); err != nil {
			t.Fatal(err)
		}
		d.exec(fmt.Sprintf("INSERT INTO a VALUES (%d)", i))
		if n := len(d.list(source)); n != i+1 {
			t.Errorf("after %d commits the newest state has %d rows", i+1, n)
		}
		if _, err := open.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}

// The start waits for older transactions and reports them. The state then contains their rows.
func TestLongTransactionsAreNamed(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)")
	d.exec("SET application_name = 'slow job'", "BEGIN", "INSERT INTO a VALUES (1)")
	waiting := make(chan string, 10)
	opened := make(chan listwatch.Source, 1)
	go func() {
		opened <- d.open(postgres.Options{Trace: &postgres.Trace{
			Waiting: func(_ int, application string, _ time.Duration) { waiting <- application },
		}}, postgres.Table{Name: "a"}).Source("a")
	}()
	if application := <-waiting; application != "slow job" {
		t.Errorf("the start waits for %q", application)
	}
	d.exec("COMMIT")
	if n := len(d.list(<-opened)); n != 1 {
		t.Errorf("got %d rows, want the one of the transaction", n)
	}
}

// Programs in other languages can compute a version in SQL, to read their own writes.
func TestVersionsCanBeComputedInSQL(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)")
	source := d.open(postgres.Options{}, postgres.Table{Name: "a"}).Source("a")
	d.exec("INSERT INTO a VALUES (1)")
	var position string
	var version uint64
	err := d.conn.QueryRow(t.Context(), "SELECT p::text, ((p - '0/0') * 256)::int8 FROM pg_current_wal_insert_lsn() p").
		Scan(&position, &version)
	if err != nil {
		t.Fatal(err)
	}
	v, err := postgres.Version(position)
	if err != nil || uint64(v) != version {
		t.Errorf("got %d and %v, want %d", v, err, version)
	}
	page, err := source.List(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: v})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("a list that is not older than the write has %d rows (%v)", len(page.Items), err)
	}
}
