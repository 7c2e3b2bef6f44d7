// Package settings serves the table settings of a SQLite database as a Source.
package settings

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// Schema makes the table watchable. If it is executed again, the table gets another epoch.
//
//go:embed schema.sql
var Schema string

// pollInterval is the time between two checks for a change. A check takes a few microseconds,
// because SQLite only compares a counter.
const pollInterval = 5 * time.Millisecond

// A Source is the table as a [listwatch.Source]. Run feeds it.
type Source struct {
	*watchcache.Cache
	db      *sql.DB
	history time.Duration // the age at which changes are dropped; never if zero
	// Statements that are executed for each change are prepared once.
	bounds, changes, state *sql.Stmt
}

var errReplaced = errors.New("the database was replaced, or the JSON of its objects has changed: " +
	"start the program again")

// bounds is the part of the table of changes that can be read.
type bounds struct {
	oldest, newest listwatch.Version
	epoch          string
}

// SQLite finds min and max without reading the table only if each is a query of its own.
const boundsQuery = `SELECT (SELECT min(version) FROM setting_changes), (SELECT max(version) FROM setting_changes),
	epoch, (SELECT sql FROM sqlite_master WHERE name = 'setting_objects'),
	(SELECT count(*) FROM sqlite_master WHERE tbl_name = 'settings' AND
	name IN ('setting_inserted', 'setting_updates', 'setting_updated', 'setting_deletes')) FROM setting_epoch`

// scanBounds reads the row of boundsQuery. It fails if the triggers are missing, because changes
// would then be lost. A program that copies the table to change it may lose the triggers. The epoch
// contains a hash of the view that makes the JSON, because with another view, objects have other
// bytes at the same version.
func scanBounds(row *sql.Row) (b bounds, err error) {
	var view string
	var triggers int
	if err = row.Scan(&b.oldest, &b.newest, &b.epoch, &view, &triggers); err == nil && triggers != 4 {
		err = errors.New("the table settings has lost its triggers: install schema.sql again")
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(view)) // never fails
	b.epoch += fmt.Sprintf("-%x", hash.Sum32())
	return b, err
}

const (
	changesQuery = `SELECT version, at, namespace, name, before, before_version, after
		FROM setting_changes WHERE version > ? ORDER BY version`
	stateQuery = `SELECT version, object FROM setting_objects JOIN setting_versions USING (namespace, name)`
)

// New returns the Source of the table in db. The table may be written by other programs, too. Run
// drops changes that are older than o.History.Age from the database.
func New(ctx context.Context, db *sql.DB, o watchcache.Options) (*Source, error) {
	s := &Source{db: db, history: max(o.History.Age, 0)}
	o.Newest = func(ctx context.Context) (listwatch.Version, error) {
		b, err := scanBounds(s.bounds.QueryRowContext(ctx))
		return b.newest, err
	}
	b, err := scanBounds(db.QueryRowContext(ctx, boundsQuery))
	d := listwatch.Description{
		APIVersion: "example.com/v1", Kind: "Setting", Fields: []string{"spec.phase"}, Epoch: b.epoch,
	}
	for statement, query := range map[**sql.Stmt]string{
		&s.bounds: boundsQuery, &s.changes: changesQuery, &s.state: stateQuery,
	} {
		if err == nil {
			*statement, err = db.PrepareContext(ctx, query) // ends with db
		}
	}
	s.Cache = watchcache.New(d, o)
	return s, err
}

// pruneInterval is the time between two deletes of old changes.
const pruneInterval = time.Minute

// prune drops the changes that are older than the history, except the newest one.
func (s *Source) prune(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := s.db.ExecContext(ctx, `DELETE FROM setting_changes WHERE version <
			(SELECT max(version) FROM setting_changes WHERE at < unixepoch() - ?)`, int(s.history.Seconds()))
		if err != nil && ctx.Err() == nil {
			log.Printf("settings: drop old changes: %v", err)
		}
		select {
		case <-time.After(pruneInterval):
		case <-ctx.Done():
		}
	}
}

// Run feeds the cache until ctx ends or the database is replaced. It retries after failures.
func (s *Source) Run(ctx context.Context) error {
	if s.history > 0 {
		pruning, cancel := context.WithCancel(ctx)
		defer cancel()
		go s.prune(pruning) // ends with Run
	}
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
	dataVersion, err := conn.PrepareContext(ctx, `PRAGMA data_version`) // ends with conn
	if err != nil {
		return err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for seen := int64(-1); ; {
		// data_version changes when another connection has changed the database. It is read before
		// the changes, so a change in between leads to another read.
		var now int64
		err := dataVersion.QueryRowContext(ctx).Scan(&now)
		if err == nil && now != seen {
			seen, err = now, s.read(ctx, conn)
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read applies the changes since the last call. It replaces the state in the first call, and when
// changes were dropped before it could read them.
func (s *Source) read(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // its reads see one state
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	b, err := scanBounds(tx.StmtContext(ctx, s.bounds).QueryRowContext(ctx))
	switch {
	case err != nil:
		return err
	case b.epoch != s.Describe().Epoch, b.newest < s.Version():
		return errReplaced
	}
	changes, err := collect(ctx, tx.StmtContext(ctx, s.changes), scanChange, max(b.oldest, s.Version()))
	switch {
	case err != nil:
		return err
	case b.oldest <= s.Version():
		return s.Apply(changes...)
	}
	objects, err := collect(ctx, tx.StmtContext(ctx, s.state), scanObject)
	if err != nil {
		return err
	}
	changes = slices.DeleteFunc(changes, func(c watchcache.Change) bool { return c.Old == nil && c.Object == nil })
	objects = slices.DeleteFunc(objects, func(o *listwatch.Object) bool { return o == nil })
	return s.Replace(objects, b.newest, append([]watchcache.Change{{Version: b.oldest}}, changes...)...)
}

func scanChange(rows *sql.Rows) (c watchcache.Change, err error) {
	var at int64
	var before, after []byte
	var beforeVersion sql.Null[listwatch.Version]
	err = rows.Scan(&c.Version, &at, &c.Key.Namespace, &c.Key.Name, &before, &beforeVersion, &after)
	c.At = time.Unix(at, 0)
	c.Old, c.Object = object(before, beforeVersion.V, false), object(after, c.Version, true)
	return c, err
}

func scanObject(rows *sql.Rows) (*listwatch.Object, error) {
	var v listwatch.Version
	var data []byte
	err := rows.Scan(&v, &data)
	return object(data, v, true), err
}

// object returns the object in data, or nil if data is empty. A row that is not an object, such as
// text in another encoding than UTF-8, must not stop the feed: it counts as absent.
func object(data []byte, v listwatch.Version, report bool) *listwatch.Object {
	if data == nil {
		return nil
	}
	o, err := listwatch.NewObject(data, v, nil)
	if err != nil && report {
		log.Printf("settings: the row of version %d is no object and counts as absent: %v", v, err)
	}
	return o
}

// collect returns the rows of a query.
func collect[T any](
	ctx context.Context, query *sql.Stmt, scan func(*sql.Rows) (T, error), args ...any,
) (all []T, err error) {
	rows, err := query.QueryContext(ctx, args...)
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
