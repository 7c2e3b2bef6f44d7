// Package settings serves the table settings of a SQLite database as a Source.
package settings

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"log"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// Schema makes the table watchable. Execute it once.
//
//go:embed schema.sql
var Schema string

// pollInterval is the time between two looks for a change. A look costs some microseconds, because
// SQLite only compares a counter.
const pollInterval = 5 * time.Millisecond

// A Source is the table as a [listwatch.Source]. Run feeds it.
type Source struct {
	*watchcache.Cache
	db *sql.DB
}

var errReplaced = errors.New("the database was replaced: start the program again")

// New returns the Source of the table in db. The table may be written by other programs, too.
func New(ctx context.Context, db *sql.DB, o watchcache.Options) (*Source, error) {
	o.Newest = func(ctx context.Context) (v listwatch.Version, err error) {
		return v, db.QueryRowContext(ctx, `SELECT max(version) FROM setting_changes`).Scan(&v)
	}
	d := listwatch.Description{APIVersion: "example.com/v1", Kind: "Setting", Fields: []string{"spec.phase"}}
	err := db.QueryRowContext(ctx, `SELECT epoch FROM setting_epoch`).Scan(&d.Epoch)
	return &Source{watchcache.New(d, o), db}, err
}

// Run feeds the cache until ctx ends or the database is replaced. It retries after failures.
func (s *Source) Run(ctx context.Context) error {
	for {
		err := s.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, errReplaced) {
			s.Fail(nil)
			return err
		}
		log.Printf("settings: %v; trying again", err)
		<-time.After(40 * pollInterval)
	}
}

// follow reads changes with one connection, until it fails.
func (s *Source) follow(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var epoch string
	err = conn.QueryRowContext(ctx, `SELECT epoch FROM setting_epoch`).Scan(&epoch)
	if err == nil && epoch != s.Describe().Epoch {
		err = errReplaced
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for seen := int64(-1); err == nil; {
		// data_version changes when another connection has changed the database. It is read before
		// the changes, so a change in between leads to another read.
		var now int64
		if err = conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&now); err == nil && now != seen {
			seen, err = now, s.read(ctx, conn)
		}
		if err == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
	}
	return err
}

// read applies the changes since the last call. It replaces the state in the first call, and when
// it finds that changes were dropped before it could read them.
func (s *Source) read(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // its reads see one state
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	var oldest, newest listwatch.Version
	err = tx.QueryRowContext(ctx, `SELECT min(version), max(version) FROM setting_changes`).Scan(&oldest, &newest)
	if err != nil {
		return err
	}
	changes, err := collect(ctx, tx, scanChange, `SELECT version, at, namespace, name, before, before_version, after
		FROM setting_changes WHERE version > ? ORDER BY version`, max(oldest, s.Version()))
	switch {
	case err != nil:
		return err
	case newest < s.Version():
		return errReplaced
	case oldest <= s.Version():
		return s.Apply(changes...)
	}
	objects, err := collect(ctx, tx, func(rows *sql.Rows) (*listwatch.Object, error) {
		var v listwatch.Version
		var data []byte
		if err := rows.Scan(&v, &data); err != nil {
			return nil, err
		}
		return listwatch.NewObject(data, v, nil)
	}, `SELECT version, object FROM setting_objects JOIN setting_versions USING (namespace, name)`)
	if err != nil {
		return err
	}
	return s.Replace(objects, newest, append([]watchcache.Change{{Version: oldest}}, changes...)...)
}

func scanChange(rows *sql.Rows) (c watchcache.Change, err error) {
	var at int64
	var before, after []byte
	var beforeVersion sql.Null[listwatch.Version]
	err = rows.Scan(&c.Version, &at, &c.Key.Namespace, &c.Key.Name, &before, &beforeVersion, &after)
	c.At = time.Unix(at, 0)
	if err == nil && before != nil {
		c.Old, err = listwatch.NewObject(before, beforeVersion.V, nil)
	}
	if err == nil && after != nil {
		c.Object, err = listwatch.NewObject(after, c.Version, nil)
	}
	return c, err
}

// collect returns the rows of a query.
func collect[T any](
	ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) (T, error), query string, args ...any,
) (all []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
