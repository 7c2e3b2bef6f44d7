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

// Schema makes the table watchable. If it is executed again, the table gets another epoch.
//
//go:embed schema.sql
var Schema string

// A Source is the table as a [listwatch.Source]. Run feeds it.
type Source struct {
	*watchcache.Cache
	// RowTimeout limits the time until PostgreSQL sends the next row. New sets it to a minute. It
	// must not be changed while Run runs.
	RowTimeout time.Duration

	pool    *pgxpool.Pool
	history time.Duration // the age at which changes are dropped; never if zero
}

const (
	// answerTimeout limits the first queries of a connection, and the first query of each poll. A
	// connection that loses all packets is detected after this time.
	answerTimeout = 5 * time.Second
	// pollInterval is the time until the changes are read without a notification. A notification
	// can be lost, for example in a connection pooler.
	pollInterval = 5 * time.Second
	// pruneInterval is the time between two deletes of old changes.
	pruneInterval = time.Minute
	// portion is the number of changes that are read and applied at once.
	portion = 1000
)

// The epoch changes if a replica takes over, if a backup is restored with recovery of its archive,
// or if the database or the table of changes is created again. It also changes if setting_object is
// replaced, because objects then have other bytes at the same version. It does not change if the
// server's files are restored from a snapshot, if only the rows of the tables are restored, or if a
// function that setting_object calls is changed. In these cases, increase the number 1 in the query
// by hand.
const epochQuery = `SELECT concat_ws('-', 1, system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), d.oid,
	to_regclass('setting_changes')::oid, left(md5(concat(p.prosrc, p.prosqlbody)), 8))
	FROM pg_control_system(), pg_database d, pg_proc p
	WHERE datname = current_database() AND p.oid = to_regproc('setting_object')`

// boundsQuery also counts the triggers of the table that are enabled for all writers.
const boundsQuery = `SELECT min(version), max(version), coalesce((` + epochQuery + `), ''),
	(SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('settings') AND tgenabled = 'A'
	AND tgname IN ('record_change', 'refuse_truncate')) FROM setting_changes`

var (
	errReplaced = errors.New("the database was replaced, or the JSON of its objects has changed: " +
		"start the program again")
	errTriggers = errors.New("triggers of the table settings are missing or disabled, so changes are lost: " +
		"install schema.sql again")
	errStalled = errors.New("PostgreSQL has stopped answering")
)

// New returns the Source of the table in the database of pool. Run drops changes that are older
// than o.History.Age from the database. If it is zero or negative, no changes are dropped.
func New(ctx context.Context, pool *pgxpool.Pool, o watchcache.Options) (*Source, error) {
	s := &Source{RowTimeout: time.Minute, pool: pool, history: max(o.History.Age, 0)}
	o.Newest = func(ctx context.Context) (listwatch.Version, error) {
		b, err := scanBounds(pool.QueryRow(ctx, boundsQuery))
		if err == nil && b.epoch != s.Describe().Epoch {
			err = errReplaced
		}
		return b.newest, err
	}
	b, err := scanBounds(pool.QueryRow(ctx, boundsQuery))
	s.Cache = watchcache.New(listwatch.Description{
		APIVersion: "example.com/v1", Kind: "Setting", Fields: []string{"spec.phase"}, Epoch: b.epoch,
	}, o)
	return s, err
}

// bounds is the part of the table of changes that can be read.
type bounds struct {
	oldest, newest listwatch.Version
	epoch          string
}

// scanBounds reads the row of boundsQuery. It fails if the triggers are missing or disabled,
// because changes would then be lost.
func scanBounds(row pgx.Row) (b bounds, err error) {
	var triggers int
	if err = row.Scan(&b.oldest, &b.newest, &b.epoch, &triggers); err == nil && triggers != 2 {
		err = errTriggers
	}
	return b, err
}

// Run feeds the cache until ctx ends or the database is replaced. It reconnects after failures.
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
		log.Printf("settings: %v; connecting again", err)
		<-time.After(200 * time.Millisecond)
	}
}

// prune drops the changes that are older than the history.
func (s *Source) prune(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := s.pool.Exec(ctx, `SELECT prune_setting_changes(make_interval(secs => $1))`, s.history.Seconds())
		if err != nil && ctx.Err() == nil {
			log.Printf("settings: drop old changes: %v", err)
		}
		select {
		case <-time.After(pruneInterval):
		case <-ctx.Done():
		}
	}
}

// follow reads changes with one connection, until it fails.
func (s *Source) follow(ctx context.Context) error {
	conn, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for err == nil {
		if err = s.read(ctx, conn); err == nil {
			err = s.awaitChange(ctx, conn)
		}
	}
	return err
}

// listen returns a new connection that receives notifications.
func (s *Source) listen(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(ctx, `LISTEN setting_changes`); err != nil {
		_ = conn.Close(ctx) // the connection is not used
		return nil, err
	}
	return conn, nil
}

// awaitChange waits for the notification of a version that has not been read, or until it is time
// to poll.
func (s *Source) awaitChange(ctx context.Context, conn *pgx.Conn) error {
	poll, cancel := context.WithTimeout(ctx, pollInterval)
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
// changes were pruned before it could read them. It may take any time, as long as rows arrive.
func (s *Source) read(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(answerTimeout, func() { cancel(errStalled) })
	defer stalled.Stop()
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		defer stalled.Reset(answerTimeout) // for the commit
		r := reader{tx, func() { stalled.Reset(s.RowTimeout) }}
		b, err := scanBounds(tx.QueryRow(ctx, boundsQuery))
		switch {
		case err != nil:
			return err
		case b.epoch != s.Describe().Epoch, b.newest < s.Version():
			return errReplaced
		case b.oldest > s.Version():
			return s.replace(ctx, r, b)
		}
		for err == nil && s.Version() < b.newest {
			var changes []watchcache.Change
			if changes, err = r.changes(ctx, s.Version(), portion); err == nil {
				err = s.Apply(changes...)
			}
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
