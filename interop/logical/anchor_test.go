//go:build unix

package logical

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/postgres"
)

const killSenders = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active"

// An anchored test has a table, a server with an anchor, and a watch of the table.
type anchored struct {
	*database
	db   *postgres.DB
	w    listwatch.Watcher
	lost chan struct{} // receives a value when the connection is lost
	back chan struct{} // must receive a value before the server connects again
}

func newAnchored(t *testing.T, o postgres.Options) *anchored {
	t.Helper()
	a := &anchored{
		database: newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY, n int)", "INSERT INTO a VALUES (1, 0)"),
		lost:     make(chan struct{}), back: make(chan struct{}),
	}
	first := true
	o.Anchor = "listwatch_anchor"
	o.Trace = &postgres.Trace{Lost: func(err error) {
		t.Log("lost:", err)
		if first {
			first = false
			a.lost <- struct{}{}
			<-a.back
		}
	}}
	a.db = a.open(o, postgres.Table{Name: "a"})
	a.w = testkit.Must(a.db.Source("a").Watch(t.Context(), listwatch.Query{
		Start: listwatch.StartAt, Version: a.db.Version(),
	}))(t)
	t.Cleanup(func() { _ = a.w.Close() })
	return a
}

// interrupt runs statements while the server has no connection.
func (a *anchored) interrupt(statements ...string) {
	a.Helper()
	a.exec(killSenders)
	<-a.lost
	a.exec(statements...)
	a.back <- struct{}{}
}

// want reads events such as "MODIFIED 1 2", with the name of a row and its n.
func (a *anchored) want(want ...string) {
	a.Helper()
	var got []string
	for e, err := range listwatch.All(a.Context(), a.w) {
		if err != nil {
			a.Fatal(err)
		}
		var row struct{ Spec struct{ N int } }
		if err := json.Unmarshal(e.Object.Data, &row); err != nil {
			a.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Key.Name, " ", row.Spec.N))
		if len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		a.Errorf("got %q, want %q", got, want)
	}
}

// With an anchor, watches see every transaction that was committed while the connection was lost,
// also if a transaction is open that would delay a new slot.
func TestAnchorDeliversEveryTransactionOfAGap(t *testing.T) {
	a := newAnchored(t, postgres.Options{})
	open := testkit.Must(pgx.Connect(t.Context(), a.url))(t)
	defer func() { _ = open.Close(context.Background()) }()
	testkit.Must(open.Exec(t.Context(), "BEGIN; INSERT INTO a VALUES (9, 9)"))(t)
	a.interrupt("UPDATE a SET n = 1", "UPDATE a SET n = 2", "INSERT INTO a VALUES (2, 0)", "DELETE FROM a WHERE id = 2")
	a.want("MODIFIED 1 1", "MODIFIED 1 2", "ADDED 2 0", "DELETED 2 0")
	testkit.Must(open.Exec(t.Context(), "COMMIT"))(t)
	a.want("ADDED 9 9")
	if s := a.db.Stats(); s.Loads != 1 || s.Resumes != 1 {
		t.Errorf("got %d loads and %d resumes, want one of each", s.Loads, s.Resumes)
	}
}

// If the anchor no longer has the log of the gap, the table is read again.
func TestAnchorBeyondTheGapIsNotUsed(t *testing.T) {
	a := newAnchored(t, postgres.Options{})
	a.interrupt("UPDATE a SET n = 1", "UPDATE a SET n = 2",
		"SELECT pg_replication_slot_advance('listwatch_anchor', pg_current_wal_lsn())")
	a.want("MODIFIED 1 2")
	a.await(func() error {
		if s := a.db.Stats(); s.Loads != 2 || s.Resumes != 0 {
			return fmt.Errorf("got %d loads and %d resumes, want 2 loads", s.Loads, s.Resumes)
		}
		return nil
	})
}

// After a crash of PostgreSQL the anchor still exists. A missing anchor is created.
func TestAnchorSurvivesACrash(t *testing.T) {
	a := newAnchored(t, postgres.Options{})
	a.server.Kill()
	<-a.lost
	a.server.Restart()
	a.connect()
	a.exec("UPDATE a SET n = 1", "UPDATE a SET n = 2")
	a.back <- struct{}{}
	a.want("MODIFIED 1 1", "MODIFIED 1 2")
	a.exec("SELECT pg_drop_replication_slot('listwatch_anchor')", killSenders)
	a.awaitRow("SELECT FROM pg_replication_slots WHERE slot_name = 'listwatch_anchor'")
}

// The servers advance the anchor, so that PostgreSQL can drop the log before it.
func TestAnchorAdvances(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)")
	o := postgres.Options{Anchor: "listwatch_anchor", AnchorAge: 50 * time.Millisecond}
	d.open(o, postgres.Table{Name: "a"})
	d.open(o, postgres.Table{Name: "a"})
	d.exec("INSERT INTO a VALUES (1)")
	var written string
	if err := d.conn.QueryRow(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&written); err != nil {
		t.Fatal(err)
	}
	d.awaitRow("SELECT FROM pg_replication_slots WHERE slot_name = 'listwatch_anchor' AND confirmed_flush_lsn >= '" +
		written + "'")
}
