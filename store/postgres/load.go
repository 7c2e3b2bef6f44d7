package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	sent        time.Time       // when confirmed was last sent
	handled     time.Time       // when the last message was handled
	truncated   map[*table]bool // since the last check of the schema
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
		row, err := f.asker.row(ctx, oldestTransaction)
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
	var reads []*tableRead
	for _, t := range f.tables {
		if t.failed {
			continue
		}
		read, err := f.readTable(ctx, t, v)
		switch {
		case err == nil:
			reads = append(reads, read)
			continue
		case f.group.Version() == 0 || !f.isToBlame(err):
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
func (f *follower) install(reads []*tableRead, reason error) (rows, changed int, err error) {
	f.relations, f.truncated = map[uint32]*table{}, map[*table]bool{}
	first := f.group.Version() == 0
	states := map[*watchcache.Cache][]*listwatch.Object{}
	changes := map[*watchcache.Cache][]watchcache.Change{}
	for _, read := range reads {
		if err := read.table.allowReload(read.shape, reason); err != nil {
			read.table.fail(err)
			continue
		}
		f.relations[read.shape.oid] = read.table
		for t, state := range read.rows {
			rows += len(state.objects)
			t.shape, t.namespaces = read.shape, state.namespaces(read.shape)
			f.setHidden(t, state.hidden)
			switch {
			case t.cache == nil:
			case first:
				states[t.cache] = state.objects
			default:
				changes[t.cache] = t.difference(state.objects)
				changed += len(changes[t.cache])
			}
		}
		read.table.shape = read.shape
	}
	if first {
		return rows, rows, f.group.Replace(f.from.version(), states)
	}
	return rows, changed, f.group.Skip(f.from.version(), changes)
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

// A tableRead is what was read from a table.
type tableRead struct {
	table *table
	shape *shape
	rows  tableState
}

// A tableState holds the rows of a table, or of the collections in the table of documents.
type tableState map[*table]*rowState

type rowState struct {
	objects []*listwatch.Object
	hidden  hiddenRows
}

// of returns the state of a table or collection, which may be empty.
func (s tableState) of(t *table) *rowState {
	if s[t] == nil {
		s[t] = &rowState{hidden: hiddenRows{}}
	}
	return s[t]
}

// namespaces returns the namespaces of the rows by name, if the identity of s lacks them.
func (r *rowState) namespaces(s *shape) map[string]string {
	namespaces := map[string]string{}
	if s.knowsNamespace() {
		return namespaces
	}
	for _, o := range r.objects {
		namespaces[o.Key.Name] = o.Key.Namespace
	}
	for key := range r.hidden {
		namespaces[key.Name] = key.Namespace
	}
	return namespaces
}

// readTable reads the shape and the rows of a table, as objects of version v.
func (f *follower) readTable(ctx context.Context, t *table, v listwatch.Version) (*tableRead, error) {
	facts, err := f.facts(ctx, t.config.Name)
	if err != nil {
		return nil, err
	}
	shape, err := f.shapeOf(ctx, f.options.Publication, &t.config, facts)
	if err != nil {
		return nil, err
	}
	rows, err := f.readRows(ctx, t, shape, v)
	if err := cmp.Or(f.checkFiles(ctx, shape), err); err != nil {
		return nil, err
	}
	return &tableRead{t, shape, rows}, nil
}

var errRewritten = errors.New("another session has changed, rewritten or truncated the table before it was read")

// checkFiles returns errRewritten if the definition or the files of a table have changed since the
// snapshot. Rows that were written again are newer than the snapshot, so the table was read as
// empty. A column that was dropped cannot be read. From the time at which the table was read, its
// lock keeps the files as they are.
func (f *follower) checkFiles(ctx context.Context, s *shape) error {
	now, err := f.currentDefinitions(ctx, s.oid)
	switch {
	case err != nil: // the connection of the asker was lost, which says nothing about the table
		return fmt.Errorf("%w, or that is unknown: %w", errRewritten, err)
	case now.tables[s.oid] != s.fingerprint:
		return errRewritten
	}
	return nil
}

// reportEvery is the number of rows between two calls of Trace.Reading.
const reportEvery = 100_000

func (f *follower) readRows(ctx context.Context, t *table, s *shape, v listwatch.Version) (tableState, error) {
	state := tableState{}
	if t.collections == nil {
		state.of(t)
	}
	for _, c := range t.collections {
		state.of(c) // all rows may have been deleted
	}
	n := 0
	return state, f.eachRow(ctx, s, func(row tuple) error {
		of := t
		if t.collections != nil {
			of = f.collectionOf(t, string(row[s.collectionAt].text))
		}
		read := state.of(of)
		if o, err := of.object(s, row, v); err == nil {
			read.objects = append(read.objects, o)
		} else {
			read.hidden[s.keyOf(row)] = hiddenRow{row.clone(), v, err}
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

// selectAll returns the query for all rows that the publication contains.
func (s *shape) selectAll() string {
	only := "ONLY "
	if s.kind == partitioned {
		only = ""
	}
	query := "SELECT " + s.columnList() + " FROM " + only + identifier(s.namespace, s.name)
	if s.filter != "" {
		query += " WHERE " + s.filter
	}
	return query
}

// columnList returns the names of the columns in SQL.
func (s *shape) columnList() string {
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = identifier(c.name)
	}
	return strings.Join(names, ", ")
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

// difference returns the changes from the state of the cache to objects.
func (t *table) difference(objects []*listwatch.Object) (changes []watchcache.Change) {
	present := make(map[listwatch.Key]bool, len(objects))
	for _, o := range objects {
		present[o.Key] = true
		if old := t.cache.Lookup(o.Key); old == nil || !t.shape.sameContent(old, o) {
			changes = append(changes, watchcache.Change{Object: o})
		}
	}
	for _, old := range t.cache.Objects() {
		if !present[old.Key] {
			changes = append(changes, watchcache.Change{Key: old.Key, Version: 1})
		}
	}
	return changes
}
