package postgres

import (
	"context"
	"strconv"
	"time"
)

// A schemaCheck looks every few seconds for changes of the tables that the log does not report
// before the next change of a row, or not at all.
type schemaCheck struct {
	results chan definitions
	latest  definitions // definitions that were not compared yet
	stop    context.CancelFunc
}

// definitions are the fingerprints of the tables at a position in the log.
type definitions struct {
	at       lsn
	tables   []fingerprint
	retained uint64 // the length of the log that the slot retains
}

// newSchemaCheck starts a check of the tables of f. A goroutine queries the catalog, so that the
// goroutine that follows the log does not wait.
func (f *follower) newSchemaCheck(ctx context.Context) *schemaCheck {
	ctx, stop := context.WithCancel(ctx)
	c := &schemaCheck{results: make(chan definitions, 1), stop: stop}
	if f.options.SchemaInterval < 0 {
		return c
	}
	oids := make([]uint32, len(f.tables))
	for i, t := range f.tables {
		if !t.failed {
			oids[i] = t.shape.oid
		}
	}
	go func() {
		ticker := time.NewTicker(f.options.SchemaInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			found, err := f.asker.definitions(ctx, f.slot, f.options.Publication, oids)
			if err != nil {
				continue // the stream notices a lost connection
			}
			if f.noteWritten(found.at, found.retained) {
				f.asker.flush(ctx)
			}
			select {
			case c.results <- found:
			default: // the stream lags, and has not compared the previous definitions yet
			}
		}
	}()
	return c
}

// definitions reads the fingerprints of tables. The fingerprint of OID zero is empty.
func (a *asker) definitions(
	ctx context.Context, slot, publication string, oids []uint32,
) (d definitions, err error) {
	d.tables = make([]fingerprint, len(oids))
	err = a.with(ctx, func(s session) (err error) {
		for i, oid := range oids {
			if oid == 0 {
				continue
			}
			if d.tables[i], d.at, err = s.fingerprint(ctx, publication, oid); err != nil {
				return err
			}
		}
		d.retained, err = s.retained(ctx, slot)
		return err
	})
	return d, err
}

// retained returns the length of the log that a slot retains. It is zero if there is no such slot.
func (s session) retained(ctx context.Context, slot string) (uint64, error) {
	row, err := s.row(ctx, `SELECT coalesce(max(pg_catalog.pg_wal_lsn_diff(
		pg_catalog.pg_current_wal_insert_lsn(), restart_lsn)::int8), 0)
		FROM pg_catalog.pg_replication_slots WHERE slot_name = %s`, literalOf(slot))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(row[0], 10, 64)
}

// poll returns an error if a table has changed. It compares fingerprints only after the stream has
// passed their position. By then, the stream has reported each TRUNCATE, and a TRUNCATE also
// changes the files of a table.
func (c *schemaCheck) poll(f *follower) error {
	if c.latest.tables == nil {
		select {
		case c.latest = <-c.results:
		default:
			return nil
		}
	}
	if f.confirmed < c.latest.at {
		return nil
	}
	found := c.latest.tables
	c.latest = definitions{}
	for i, t := range f.tables {
		known := &t.shape.fingerprint
		switch {
		case t.failed || found[i] == *known:
			continue
		case found[i].definition != known.definition || !f.truncated[t]:
			return &tableError{t, "its definition has changed"}
		}
		shape := *t.shape
		shape.fingerprint = found[i]
		t.shape = &shape
		delete(f.truncated, t)
	}
	return nil
}
