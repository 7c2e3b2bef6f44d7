package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
)

// An asker asks PostgreSQL over a connection of its own. It is safe for concurrent use.
type asker struct {
	*pool
	db *DB

	mu       sync.Mutex
	mayFlush bool // guarded by mu: the role may call pg_logical_emit_message
}

func newAsker(db *DB) *asker { return &asker{pool: newPool(db.config, 1), db: db, mayFlush: true} }

// row returns the only row of a query.
func (a *asker) row(ctx context.Context, query string) (row []string, err error) {
	err = a.with(ctx, func(s session) (err error) {
		row, err = s.row(ctx, "%s", query)
		return err
	})
	return row, err
}

// flushAfter is the time after which newest makes PostgreSQL flush its log.
const flushAfter = 10 * time.Millisecond

// newest returns a version that covers all transactions that were acknowledged before the call. It
// uses the insert position of the log, which also covers transactions with synchronous_commit=off.
// The stream reaches this position only when the log is flushed up to it, which may take long. So
// if the tables have not reached the position within flushAfter, newest writes a record of its own,
// which PostgreSQL flushes at once.
func (a *asker) newest(ctx context.Context) (listwatch.Version, error) {
	row, err := a.row(ctx, "SELECT pg_catalog.pg_current_wal_insert_lsn()")
	if err != nil {
		return 0, unavailable(ctx, err)
	}
	at, err := parseLSN(row[0])
	if err != nil {
		return 0, unavailable(ctx, err)
	}
	moment, cancel := context.WithTimeout(ctx, flushAfter)
	defer cancel()
	if a.db.group.Wait(moment, at.version()) != nil && ctx.Err() == nil && a.isAllowedToFlush() {
		if _, err := a.row(ctx, "SELECT pg_catalog.pg_logical_emit_message(true, 'listwatch', '')"); err != nil {
			a.forbidFlush(err)
		}
	}
	return at.version(), nil
}

// unavailable returns the error for clients. It shows them no text from PostgreSQL.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &listwatch.Error{
		Code: listwatch.Unavailable, Op: "postgres", Message: "the database does not answer", Err: err,
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

func (a *asker) isAllowedToFlush() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mayFlush
}

// forbidFlush stops calls of pg_logical_emit_message if the role may not call it.
func (a *asker) forbidFlush(err error) {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == insufficientPrivilege {
		a.mu.Lock()
		a.mayFlush = false
		a.mu.Unlock()
	}
}

// insufficientPrivilege is an SQLSTATE.
const insufficientPrivilege = "42501"
