package postgres

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// flushAfter is the time after which newest makes PostgreSQL flush its log.
const flushAfter = 10 * time.Millisecond

// newest returns a version that covers all transactions that were acknowledged before the call. It
// uses the insert position of the log, which also covers transactions with synchronous_commit=off.
// The stream reaches this position only when the log is flushed up to it, which may take long. So
// if the tables have not reached the position within flushAfter, newest writes a record of its own,
// which PostgreSQL flushes at once.
func (db *DB) newest(ctx context.Context) (listwatch.Version, error) {
	row, err := db.reads.row(ctx, "SELECT pg_catalog.pg_current_wal_insert_lsn()")
	if err != nil {
		return 0, unavailable(ctx, err)
	}
	at, err := parseLSN(row[0])
	if err != nil {
		return 0, unavailable(ctx, err)
	}
	moment, cancel := context.WithTimeout(ctx, flushAfter)
	defer cancel()
	if db.group.Wait(moment, at.version()) != nil && ctx.Err() == nil {
		db.flush(ctx)
	}
	return at.version(), nil
}

// flush writes a record that makes PostgreSQL flush its log and wake the process that sends it. On
// a busy machine, this process of PostgreSQL 17 and 18 sometimes misses a flush, and sends nothing
// until the next one.
func (db *DB) flush(ctx context.Context) {
	if db.mayNotFlush.Load() {
		return
	}
	_, err := db.reads.row(ctx, flushCommit+"; SELECT pg_catalog.pg_logical_emit_message(true, 'listwatch', '')")
	if hasCode(err, insufficientPrivilege) {
		db.mayNotFlush.Store(true)
	}
}

// flushCommit makes PostgreSQL flush the log at the end of the transaction even if the database has
// synchronous_commit=off.
const flushCommit = `SELECT pg_catalog.set_config('synchronous_commit', 'local', true)
	WHERE pg_catalog.current_setting('synchronous_commit') = 'off'`

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
