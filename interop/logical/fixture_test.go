//go:build unix

package logical

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/store/postgres"
)

// A database is a schema in a PostgreSQL, and a connection of the application.
type database struct {
	testing.TB
	server *pgtest.Server
	url    string
	conn   *pgx.Conn

	stopMirrors func()
}

// newDatabase returns a database in which the statements were executed.
func newDatabase(t testing.TB, statements ...string) *database {
	t.Helper()
	server := pgtest.Start(t)
	url, err := server.CreateSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &database{TB: t, server: server, url: url}
	d.connect()
	d.exec(statements...)
	return d
}

func (d *database) connect() {
	d.Helper()
	var err error
	if d.conn, err = pgx.Connect(d.Context(), d.url); err != nil {
		d.Fatal(err)
	}
	conn := d.conn
	d.Cleanup(func() { _ = conn.Close(context.Background()) })
}

func (d *database) exec(statements ...string) {
	d.Helper()
	for _, sql := range statements {
		if _, err := d.conn.Exec(d.Context(), sql); err != nil {
			d.Fatalf("%s: %v", sql, err)
		}
	}
}

// open opens tables until the end of the test.
func (d *database) open(o postgres.Options, tables ...postgres.Table) *postgres.DB {
	d.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	db, err := postgres.Open(ctx, d.url, o, tables...)
	if err != nil {
		cancel()
		d.Fatal(err)
	}
	d.Cleanup(func() {
		cancel()
		_ = db.Wait() // the error of ctx
	})
	return db
}

// list returns the newest objects of a Source.
func (d *database) list(s listwatch.Source) []*listwatch.Object {
	d.Helper()
	return testkit.Must(s.List(d.Context(), listwatch.Query{}))(d).Items
}

// count returns the number of rows of a query.
func (d *database) count(query string) (n int) {
	d.Helper()
	if err := d.conn.QueryRow(d.Context(), "SELECT count(*) FROM ("+query+") rows").Scan(&n); err != nil {
		d.Fatal(err)
	}
	return n
}
