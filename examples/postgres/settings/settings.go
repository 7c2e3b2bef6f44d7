// Package settings serves the table settings of a PostgreSQL database as a Source.
package settings

import (
	"context"
	_ "embed"
	"errors"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// Schema makes the table watchable. Execute it once.
//
//go:embed schema.sql
var Schema string

// A Source is the table as a [listwatch.Source]. Run feeds it.
type Source struct {
	*watchcache.Cache
	pool *pgxpool.Pool
}

// The epoch changes if a replica takes over, a backup is restored with recovery of its archive, or
// the database is created again. It does not change if the table is restored from a dump into the
// same database, or the server's files from a snapshot. In these two cases, increase the number 1
// in the query by hand.
const epochQuery = `SELECT concat_ws('-', 1, system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), oid)
	FROM pg_control_system(), pg_database WHERE datname = current_database()`

var errReplaced = errors.New("the database was replaced: start the program again")

// New returns the Source of the table in the database of pool.
func New(ctx context.Context, pool *pgxpool.Pool, o watchcache.Options) (*Source, error) {
	o.Newest = func(ctx context.Context) (v listwatch.Version, err error) {
		return v, pool.QueryRow(ctx, `SELECT max(version) FROM setting_changes`).Scan(&v)
	}
	d := listwatch.Description{APIVersion: "example.com/v1", Kind: "Setting", Fields: []string{"spec.phase"}}
	err := pool.QueryRow(ctx, epochQuery).Scan(&d.Epoch)
	return &Source{watchcache.New(d, o), pool}, err
}

// Run feeds the cache until ctx ends or the database is replaced. It reconnects after failures.
func (s *Source) Run(ctx context.Context) error {
	for {
		err := s.follow(ctx)
		if ctx.Err() != nil || err == errReplaced {
			s.Fail(nil)
			return err
		}
		log.Printf("settings: %v; connecting again", err)
		<-time.After(200 * time.Millisecond)
	}
}

// follow reads changes with one connection, until it fails.
func (s *Source) follow(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var epoch string
	if err = conn.QueryRow(ctx, epochQuery).Scan(&epoch); err == nil && epoch != s.Describe().Epoch {
		err = errReplaced
	}
	if err == nil {
		_, err = conn.Exec(ctx, `LISTEN setting_changes`)
	}
	for err == nil {
		if err = s.read(ctx, conn); err == nil {
			err = s.awaitChange(ctx, conn)
		}
	}
	return err
}

// awaitChange waits for the notification of a version that has not been read. It waits for at most
// five seconds, because a notification can be lost, for example in a connection pooler.
func (s *Source) awaitChange(ctx context.Context, conn *pgx.Conn) error {
	poll, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(poll)
		if poll.Err() != nil {
			return ctx.Err() // nil when it is time to poll
		}
		if err != nil {
			return err
		}
		if v, err := listwatch.ParseVersion(n.Payload); err != nil || v > s.Version() {
			return nil
		}
	}
}

// read applies the changes since the last call. It replaces the state in the first call, and when
// it finds that changes were pruned before it could read them.
func (s *Source) read(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		var oldest, newest listwatch.Version
		bounds := tx.QueryRow(ctx, `SELECT min(version), max(version) FROM setting_changes`)
		if err := bounds.Scan(&oldest, &newest); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT version, at, namespace, name, before, after FROM setting_changes
			WHERE version > $1 ORDER BY version`, max(oldest, s.Version()))
		changes, err := pgx.CollectRows(rows, scanChange)
		switch {
		case err != nil:
			return err
		case newest < s.Version():
			return errReplaced
		case oldest <= s.Version():
			return s.Apply(changes...)
		}
		rows, _ = tx.Query(ctx, `SELECT v.version, now(), namespace, name, NULL::json, setting_object(s, v.version) FROM settings s JOIN setting_versions v USING (namespace, name)`)
		objects, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*listwatch.Object, error) {
			c, err := scanChange(row)
			return c.Object, err
		})
		if err != nil {
			return err
		}
		return s.Replace(objects, newest, append([]watchcache.Change{{Version: oldest}}, changes...)...)
	})
}

func scanChange(row pgx.CollectableRow) (c watchcache.Change, err error) {
	var before, after []byte
	if err = row.Scan(&c.Version, &c.At, &c.Key.Namespace, &c.Key.Name, &before, &after); err == nil && before != nil {
		c.Old, err = listwatch.ParseObject(before)
	}
	if err == nil && after != nil {
		c.Object, err = listwatch.ParseObject(after)
	}
	return c, err
}
