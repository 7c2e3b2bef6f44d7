package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A follower follows the log over one connection, from one state of the tables. Its goroutine is
// the only one that changes the tables. It also confirms what it has applied, so that a process
// that hangs loses its replication slot, and PostgreSQL can drop the log.
type follower struct {
	*DB
	session

	slot        string
	from        lsn               // the state of the tables
	resumed     bool              // with the anchor, without reading the tables
	relations   map[uint32]*table // by the OID in messages
	tx          *transaction      // nil outside of a transaction
	confirmed   lsn               // all transactions that end at or before it were applied
	deadlineSet time.Time
	sent        time.Time // when confirmed was last sent
	handled     time.Time // when the last message was handled
}

// load creates a replication slot, reads all tables at its start, and makes the differences
// visible. reason is the error after which the tables are read again. It is nil at the start.
func (f *follower) load(ctx context.Context, reason error) error {
	err := f.tryLoad(ctx, reason)
	for tries := 1; errors.Is(err, errRewritten) && tries < maxTries; tries++ {
		if _, err := f.query(ctx, "ROLLBACK"); err != nil {
			return err
		}
		// An error of PostgreSQL has dropped the slot already.
		if _, err := f.query(ctx, `SELECT pg_catalog.pg_drop_replication_slot(slot_name)
			FROM pg_catalog.pg_replication_slots WHERE slot_name = %s`, literalOf(f.slot)); err != nil {
			return err
		}
		err = f.tryLoad(ctx, reason)
	}
	return err
}

func (f *follower) tryLoad(ctx context.Context, reason error) error {
	began := time.Now()
	if err := f.createSlot(ctx); err != nil {
		return err
	}
	rows, changed, err := f.readTables(ctx, reason)
	if err != nil {
		return err
	}
	if _, err := f.query(ctx, "COMMIT"); err != nil {
		return err
	}
	if err := f.keepAnchor(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	f.stats.Loads++
	f.mu.Unlock()
	f.options.Trace.Loaded(rows, changed, time.Since(began))
	return nil
}

// nameSlot gives a new slot a name that no other has.
func (f *follower) nameSlot() {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	f.slot = "listwatch_" + hex.EncodeToString(random[:])
}

// createSlot creates a temporary slot in a transaction that sees the state at its start. It waits
// for the end of older transactions without a limit, because another slot would wait again.
func (f *follower) createSlot(ctx context.Context) error {
	f.nameSlot()
	const begin = "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = 0"
	if _, err := f.query(ctx, begin); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { f.reportWaiting(watching) })
	defer reporting.Wait() // the hooks are called one at a time
	defer stop()
	row, err := f.row(ctx, "CREATE_REPLICATION_SLOT %s TEMPORARY LOGICAL pgoutput (SNAPSHOT 'use')", f.slot)
	if err != nil {
		return err
	}
	if f.from, err = parseLSN(row[1]); err == nil {
		_, err = f.query(ctx, "SET LOCAL lock_timeout TO DEFAULT")
	}
	return err
}

// waitingInterval is the time between two reports that the start waits.
const waitingInterval = 5 * time.Second

// reportWaiting reports the transaction whose end CREATE_REPLICATION_SLOT waits for, until ctx
// ends.
func (f *follower) reportWaiting(ctx context.Context) {
	wait := time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = waitingInterval
		}
		row, err := f.reads.row(ctx, oldestTransaction)
		if err != nil {
			continue // the transaction cannot be reported
		}
		pid, _ := strconv.Atoi(row[0])
		seconds, _ := strconv.Atoi(row[2])
		f.options.Trace.Waiting(pid, row[1], time.Duration(seconds)*time.Second)
	}
}

// readTables reads all tables in the transaction of the slot and brings the caches to their state.
// After an error, nothing has changed.
func (f *follower) readTables(ctx context.Context, reason error) (rows, changed int, err error) {
	v := f.from.version()
	if v < f.group.Version() {
		return 0, 0, ErrReplaced // by an older copy of its files
	}
	f.feeding.Lock()
	defer f.feeding.Unlock()
	var reads []*tableState
	for _, t := range f.tables {
		if t.failed {
			continue
		}
		read, err := f.readTable(ctx, t, v)
		switch {
		case err == nil:
			reads = append(reads, read)
			continue
		case f.group.Version() == 0 || ctx.Err() != nil || !f.isToBlame(err):
			return 0, 0, fmt.Errorf("table %s: %w", t.config.Name, err)
		}
		t.fail(err)
		if f.TxStatus() != inTransaction { // and PostgreSQL has dropped the temporary slot
			return 0, 0, fmt.Errorf("table %s: %w", t.config.Name, err)
		}
	}
	return f.install(reads, reason)
}

// isToBlame reports whether reading a table would fail again with an error.
func (f *follower) isToBlame(err error) bool {
	return !f.IsClosed() && !errors.Is(err, errRewritten) && !isTemporary(err)
}

// install brings the tables and their caches to the state that was read.
func (f *follower) install(reads []*tableState, reason error) (rows, changed int, err error) {
	first := f.group.Version() == 0
	states := map[*watchcache.Cache][]*listwatch.Object{}
	changes := map[*watchcache.Cache][]watchcache.Change{}
	for _, read := range reads {
		t := read.table
		if err := t.allowReload(read.shape, reason); err != nil {
			t.fail(err)
			continue
		}
		for name, c := range t.collections {
			states[c.cache] = read.objects[name]
			rows += len(read.objects[name])
			if !first {
				changes[c.cache] = c.difference(read.objects[name])
				changed += len(changes[c.cache])
			}
		}
		f.replace(t, read)
	}
	if first {
		return rows, rows, f.group.Replace(f.from.version(), states)
	}
	return rows, changed, f.group.Skip(f.from.version(), changes)
}

// replace replaces what a table keeps in addition to the objects.
func (f *follower) replace(t *table, read *tableState) {
	before := t.hidden
	t.shape, t.namespaces = read.shape, read.namespaces()
	f.mu.Lock()
	t.hidden = read.hidden
	f.mu.Unlock()
	for name := range t.collections {
		t.reportHiddenSince(before[name], name)
	}
}

// reloads are times at which a table was read again although its definition had not changed.
type reloads struct {
	reason *tableError // nil if there was none
	count  int
	first  time.Time
}

// maxReloads is the number of times per minute that a table is read again for the same reason
// although its definition is the same. It may have changed and changed back.
const maxReloads = 5

// allowReload returns an error if the table, which now has the given shape, was read again too
// often for the same reason, so that a problem that remains after reading does not cause a loop.
func (t *table) allowReload(now *shape, reason error) error {
	var tableReason *tableError
	if !errors.As(reason, &tableReason) || tableReason.table != t {
		return nil
	}
	last := &t.reloads
	switch {
	case last.reason == tableReason:
		return nil // another attempt, after a lost connection
	case t.shape.fingerprint != now.fingerprint:
		*last = reloads{}
		return nil
	case last.reason == nil || last.reason.what != tableReason.what || time.Since(last.first) > time.Minute:
		*last = reloads{first: time.Now()}
	}
	last.reason = tableReason
	if last.count++; last.count == maxReloads {
		return fmt.Errorf("the table was read again %d times within a minute: %w", maxReloads, reason)
	}
	return nil
}

// A tableError is a reason to read the tables again. One table has caused it.
type tableError struct {
	table *table
	what  string
}

func (e *tableError) Error() string { return "table " + e.table.config.Name + ": " + e.what }

// A tableState holds the rows of a table that was read.
type tableState struct {
	table   *table
	shape   *shape
	objects map[string][]*listwatch.Object // by collection
	hidden  hiddenRows
}

// namespaces returns the namespaces of the rows by name, if the identity lacks them.
func (s *tableState) namespaces() map[string]string {
	namespaces := map[string]string{}
	if s.shape.knowsNamespace() {
		return namespaces
	}
	for _, o := range s.objects[""] {
		namespaces[o.Key.Name] = o.Key.Namespace
	}
	for key := range s.hidden[""] {
		namespaces[key.Name] = key.Namespace
	}
	return namespaces
}

// readTable reads the shape and the rows of a table, as objects of version v.
func (f *follower) readTable(ctx context.Context, t *table, v listwatch.Version) (*tableState, error) {
	facts, err := f.facts(ctx, t.config.Name)
	if err != nil {
		return nil, err
	}
	shape, err := f.shapeOf(ctx, f.options.Publication, &t.config, facts)
	if err != nil {
		return nil, err
	}
	read := &tableState{t, shape, map[string][]*listwatch.Object{}, hiddenRows{}}
	err = f.readRows(ctx, read, v)
	return read, cmp.Or(f.checkFiles(ctx, shape), err)
}

var errRewritten = errors.New("another session has changed, rewritten or truncated the table before it was read")

// checkFiles returns errRewritten if the definition or the files of a table have changed since the
// snapshot. Rows that were written again are newer than the snapshot, so the table was read as
// empty. A column that was dropped cannot be read. From the time at which the table was read, its
// lock keeps the files as they are.
func (f *follower) checkFiles(ctx context.Context, s *shape) error {
	now, err := f.currentDefinitions(ctx, s.oid)
	switch {
	case err != nil: // the connection was lost, which says nothing about the table
		return fmt.Errorf("%w, or that is unknown: %w", errRewritten, err)
	case now.tables[s.oid] != s.fingerprint:
		return errRewritten
	}
	return nil
}

// reportEvery is the number of rows between two calls of Trace.Reading.
const reportEvery = 100_000

func (f *follower) readRows(ctx context.Context, into *tableState, v listwatch.Version) error {
	s, t, n := into.shape, into.table, 0
	return f.eachRow(ctx, s, func(row tuple) error {
		p := s.placeOf(row)
		if o, err := t.object(s, p, row, v); err == nil {
			into.objects[p.collection] = append(into.objects[p.collection], o)
		} else {
			into.hidden.set(p, &hiddenRow{row.clone(), v, err})
		}
		if n++; f.options.MaxRows > 0 && n > f.options.MaxRows {
			return fmt.Errorf("it has more than %d rows, which Options.MaxRows allows", f.options.MaxRows)
		}
		if n%reportEvery == 0 {
			f.options.Trace.Reading(t.config.Name, n)
		}
		return nil
	})
}

func tupleOf(values [][]byte) tuple {
	t := make(tuple, len(values))
	for i, text := range values {
		if t[i] = (value{text, isText}); text == nil {
			t[i].kind = isNull
		}
	}
	return t
}
