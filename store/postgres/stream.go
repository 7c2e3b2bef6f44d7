package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/listwatch/listwatch/watchcache"
)

// confirmInterval is the longest time between two confirmations. It must be less than half of
// wal_sender_timeout, for which 60 seconds is the default.
const confirmInterval = 10 * time.Second

// streamTimeout is the time without any message after which the connection counts as lost, as in
// PostgreSQL's own subscribers. PostgreSQL answers each confirmation.
const streamTimeout = time.Minute

// follow receives the log from the state of the tables until the connection or ctx ends, or until
// the tables must be read again. It always returns an error.
func (f *follower) follow(ctx context.Context) error {
	f.confirmed, f.handled, f.relations = f.from, time.Now(), map[uint32]*table{}
	for _, t := range f.tables {
		if t.truncated = false; !t.failed {
			f.relations[t.shape.oid] = t
		}
	}
	start := fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL %s (proto_version '1', publication_names %s)",
		f.slot, f.from, literalOf(identifier(f.options.Publication)))
	f.Frontend().SendQuery(&pgproto3.Query{String: start})
	if err := f.Frontend().Flush(); err != nil {
		return err
	}
	checks := f.newSchemaCheck(ctx)
	defer checks.stop()
	defer context.AfterFunc(ctx, func() { _ = f.Conn().SetReadDeadline(time.Unix(1, 0)) })()
	for {
		message, err := f.receive(ctx)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case nil: // the next confirmation or check is due
			if time.Since(f.handled) > streamTimeout {
				return errSilent
			}
		case *pgproto3.CopyData:
			if err := f.handle(m.Data); err != nil {
				return dataError{err}
			}
			f.handled = time.Now()
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyDone:
			err = errors.New("PostgreSQL has ended the stream")
		}
		if err == nil {
			err = f.confirm()
		}
		if err != nil {
			return err
		}
		if err := checks.poll(f); err != nil {
			return dataError{err}
		}
	}
}

var errSilent = fmt.Errorf("PostgreSQL has sent nothing for %v", streamTimeout)

// A dataError is an error of what the log contains. To follow the same log again would not help.
type dataError struct{ error }

func (e dataError) Unwrap() error { return e.error }

// receive returns the next message, or nil after a moment without one. The deadline of the
// connection is set rarely, because messages come by the thousand.
func (f *follower) receive(ctx context.Context) (pgproto3.BackendMessage, error) {
	if now := time.Now(); now.Sub(f.deadlineSet) > time.Second/2 {
		f.deadlineSet = now
		if err := f.Conn().SetReadDeadline(now.Add(time.Second)); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	message, err := f.ReceiveMessage(context.Background())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && pgconn.Timeout(err) && !f.IsClosed():
		f.deadlineSet = time.Time{}
		return nil, nil
	}
	return message, err
}

// handle handles a message of the replication stream (PostgreSQL documentation, "Streaming
// Replication Protocol").
func (f *follower) handle(data []byte) error {
	d := decoder{rest: data}
	switch kind := d.byte(); kind {
	case 'k':
		end := d.lsn()
		d.uint(8)          // the time of the server
		if d.byte() == 1 { // PostgreSQL requests a confirmation
			f.sent = time.Time{}
		}
		if d.err != nil {
			return d.err
		}
		f.reached(end)
		return nil
	case 'w':
		d.bytes(3 * 8) // where the message starts, where the log ends, and the time of the server
		if d.err != nil {
			return d.err
		}
		message, err := parseMessage(d.rest)
		if err != nil {
			return err
		}
		return f.apply(message)
	default:
		return fmt.Errorf("unknown message %q of the replication stream", kind)
	}
}

// reached notes that PostgreSQL has sent all transactions that end at or before end.
func (f *follower) reached(end lsn) {
	f.confirmed = max(f.confirmed, end)
	f.group.Advance(end.version())
}

// apply applies a message of pgoutput.
func (f *follower) apply(message any) error {
	switch m := message.(type) {
	case begin:
		f.tx = new(transaction)
	case relation:
		return f.checkRelation(m)
	case change:
		if f.tx == nil {
			return errOutside
		}
		f.tx.add(rowChange{table: f.relations[m.relation], old: m.old, new: m.new})
	case truncate:
		if f.tx == nil {
			return errOutside
		}
		for _, oid := range m.relations {
			f.tx.add(rowChange{table: f.relations[oid], truncate: true})
		}
	case commit:
		if f.tx == nil {
			return errOutside
		}
		tx := f.tx
		f.tx = nil
		return f.commit(tx, m)
	}
	return nil
}

var errOutside = errors.New("a change was received outside of a transaction")

// checkRelation returns an error if the columns of a table have changed since it was read.
func (f *follower) checkRelation(r relation) error {
	t := f.relations[r.oid]
	if t != nil && !t.failed && !t.shape.matches(r) {
		return &tableError{t, "its columns have changed"}
	}
	return nil
}

// commit makes the changes of a transaction visible.
func (f *follower) commit(tx *transaction, c commit) error {
	f.feeding.Lock()
	defer f.feeding.Unlock()
	outcomes, err := tx.outcomes(c)
	if err != nil {
		return err
	}
	changes, n := map[*watchcache.Cache][]watchcache.Change{}, 0
	for _, o := range outcomes {
		n += o.addChanges(changes)
	}
	if err := f.group.Apply(c.end.version(), changes); err != nil {
		return err
	}
	for i := range tx.changes {
		if change := &tx.changes[i]; change.truncate {
			change.table.truncated = true
		}
	}
	f.confirmed = max(f.confirmed, c.end)
	f.mu.Lock()
	for _, o := range outcomes {
		o.keep()
	}
	f.stats.Transactions++
	f.stats.Changes += uint64(n)
	f.mu.Unlock()
	for _, o := range outcomes {
		o.reportHidden()
	}
	return nil
}

// confirm reports the applied position to PostgreSQL, so that it can drop the log up to this
// position, and requests a reply. It does nothing until confirmInterval has passed since the last
// report.
func (f *follower) confirm() error {
	now := time.Now()
	if now.Sub(f.sent) < confirmInterval {
		return nil
	}
	f.sent = now
	status := make([]byte, 0, 34)
	status = append(status, 'r')
	for range 3 { // written, flushed, applied
		status = binary.BigEndian.AppendUint64(status, uint64(f.confirmed))
	}
	status = binary.BigEndian.AppendUint64(status, uint64(now.Sub(epochOfPostgreSQL).Microseconds()))
	status = append(status, 1) // wants a reply
	f.Frontend().Send(&pgproto3.CopyData{Data: status})
	return f.Frontend().Flush()
}

var epochOfPostgreSQL = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
