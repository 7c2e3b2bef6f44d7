package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An anchor is a permanent replication slot that all servers share. It retains the log of the last
// while, so that a server that has lost its connection continues where it was.

// keepAnchor creates the anchor if it is missing, or if PostgreSQL has dropped the log that it
// needs. The copy of a slot is created at once, while a new slot waits for older transactions. An
// error would drop the temporary slot, too.
func (f *follower) keepAnchor(ctx context.Context) error {
	name := literalOf(f.options.Anchor)
	if f.options.Anchor == "" {
		return nil
	}
	_, err := f.query(ctx, `SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
		WHERE slot_name = %s AND wal_status = 'lost'`, name)
	if err != nil {
		return err
	}
	_, err = f.query(ctx, `SELECT pg_catalog.pg_copy_logical_replication_slot(%s, %s, false)
		WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = %[2]s)`, literalOf(f.slot), name)
	return err
}

// mayResume reports whether the log can be followed again after err, from the state of the tables.
// A follower that has resumed and has made no progress must read the tables.
func (f *follower) mayResume(err error) bool {
	_, isData := errors.AsType[dataError](err)
	return f.options.Anchor != "" && !isData && !(f.resumed && f.confirmed == f.from)
}

// restart resumes or, if that is impossible, reads the tables again.
func (f *follower) restart(ctx context.Context, reason error, mayResume bool) error {
	if mayResume {
		err := f.resume(ctx)
		if err == nil {
			return nil
		}
		f.options.Trace.Lost(fmt.Errorf("the anchor: %w", err))
	}
	return f.load(ctx, reason)
}

// errPassed is the error of resume if the anchor no longer has the log since the state of the
// tables.
var errPassed = errors.New("the anchor is beyond the state of the tables")

// resume continues from the state of the tables, with a copy of the anchor. PostgreSQL would start
// later without an error if the slot was beyond the state.
func (f *follower) resume(ctx context.Context) error {
	f.nameSlot()
	row, err := f.row(ctx, "SELECT lsn FROM pg_catalog.pg_copy_logical_replication_slot(%s, %s, true)",
		literalOf(f.options.Anchor), literalOf(f.slot))
	if err != nil {
		return err
	}
	start, err := parseLSN(row[0])
	if err != nil {
		return err
	}
	f.from = lsn(f.group.Version() / versionsPerByte)
	if start > f.from {
		_, err := f.query(ctx, "SELECT pg_catalog.pg_drop_replication_slot(%s)", literalOf(f.slot))
		return errors.Join(fmt.Errorf("%w: %s is after %s", errPassed, start, f.from), err)
	}
	f.resumed = true
	f.mu.Lock()
	f.stats.Resumes++
	f.mu.Unlock()
	f.options.Trace.Resumed()
	return nil
}

// advanceAnchor lets PostgreSQL drop the log that is older than AnchorAge, until ctx ends.
func (db *DB) advanceAnchor(ctx context.Context) {
	ticker := time.NewTicker(db.options.AnchorAge)
	defer ticker.Stop()
	for before := lsn(0); ; before = lsn(db.group.Version() / versionsPerByte) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if before == 0 {
			continue
		}
		// It fails if another server is advancing the anchor or has advanced it further.
		_ = db.writes.with(ctx, func(s session) error {
			_, err := s.query(ctx, "SELECT pg_catalog.pg_replication_slot_advance(%s, '%s')",
				literalOf(db.options.Anchor), before)
			return err
		})
	}
}
