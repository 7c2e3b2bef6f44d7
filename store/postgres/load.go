package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
		if _, err := f.query(ctx, "DROP_REPLICATION_SLOT %s", f.slot); err != nil {
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

// createSlot creates a temporary slot in a transaction that sees the state at its start.
func (f *follower) createSlot(ctx context.Context) error {
	f.nameSlot()
	if _, err := f.query(ctx, "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go f.reportWaiting(watching)
	row, err := f.row(ctx, "CREATE_REPLICATION_SLOT %s TEMPORARY LOGICAL pgoutput (SNAPSHOT 'use')", f.slot)
	if err != nil {
		return err
	}
	f.from, err = parseLSN(row[1])
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
		if err != nil || len(row) < 3 {
			continue // the transaction cannot be reported
		}
		pid, _ := strconv.Atoi(row[0])
		seconds, _ := strconv.Atoi(row[2])
		f.options.Trace.Waiting(pid, row[1], time.Duration(seconds)*time.Second)
	}
}

// readTables reads all tables in the transaction of the slot and brings the caches to their state.
func (f *follower) readTables(ctx context.Context, reason error) (rows, changed int, err error) {
	v := f.from.version()
	if v < f.group.Version() {
		return 0, 0, ErrReplaced // by an older copy of its files
	}
	f.feeding.Lock()
	defer f.feeding.Unlock()
	f.relations, f.truncated = map[uint32]*table{}, map[*table]bool{}
	states := map[*watchcache.Cache][]*listwatch.Object{}
	changes := map[*watchcache.Cache][]watchcache.Change{}
	first := f.group.Version() == 0
	for _, t := range f.tables {
		if t.failed {
			continue
		}
		read, err := f.readTable(ctx, t, v)
		switch {
		case err != nil && (first || f.IsClosed() || ctx.Err() != nil || errors.Is(err, errRewritten)):
			return 0, 0, fmt.Errorf("table %s: %w", t.config.Name, err)
		case err != nil:
			t.fail(err)
			if _, err := f.query(ctx, "ROLLBACK TO SAVEPOINT table_read"); err != nil {
				return 0, 0, err
			}
			continue
		}
		if err := t.allowReload(reason); err != nil {
			t.fail(err)
			continue
		}
		for t, objects := range read {
			rows += len(objects)
			switch {
			case t.failed:
			case t.isUndeclared():
				if err := t.cache.Replace(objects, v); err != nil {
					return 0, 0, err
				}
			case first:
				states[t.cache] = objects
			default:
				changes[t.cache] = t.difference(objects)
				changed += len(changes[t.cache])
			}
		}
	}
	if first {
		return rows, rows, f.group.Replace(v, states)
	}
	return rows, changed, f.group.Skip(v, changes)
}

// allowReload returns an error if the table was already read again for the same reason a moment ago
// and its definition is the same as then, so that a problem that remains after reading does not
// cause a loop.
func (t *table) allowReload(reason error) error {
	var tableReason *tableError
	if !errors.As(reason, &tableReason) || tableReason.table != t {
		return nil
	}
	last := t.reloaded
	if last.reason == tableReason {
		return nil // another attempt, after a lost connection
	}
	t.reloaded = reload{tableReason, t.shape.fingerprint, time.Now()}
	if last.reason != nil && last.reason.what == tableReason.what && last.fingerprint == t.shape.fingerprint &&
		time.Since(last.at) < time.Minute {
		return fmt.Errorf("the table was read again twice within a minute: %w", reason)
	}
	return nil
}

// A tableError is a reason to read the tables again. One table has caused it.
type tableError struct {
	table *table
	what  string
}

func (e *tableError) Error() string { return "table " + e.table.config.Name + ": " + e.what }

// A tableState holds the objects of a table, or of the collections in the table of documents.
type tableState map[*table][]*listwatch.Object

// readTable reads the shape and the rows of a table, as objects of version v.
func (f *follower) readTable(ctx context.Context, t *table, v listwatch.Version) (tableState, error) {
	if _, err := f.query(ctx, "SAVEPOINT table_read"); err != nil {
		return nil, err
	}
	shape, err := f.shapeOf(ctx, f.options.Publication, &t.config, t.description)
	if err != nil {
		return nil, err
	}
	state, err := f.readRows(ctx, t, shape, v)
	if err != nil {
		return nil, err
	}
	if err := f.checkFiles(ctx, shape); err != nil {
		return nil, err
	}
	f.relations[shape.oid] = t
	t.shape = shape
	for _, c := range t.collections {
		c.shape = shape
	}
	clear(t.namespaces)
	if !shape.knowsNamespace() {
		for _, o := range state[t] {
			t.namespaces[o.Key.Name] = o.Key.Namespace
		}
	}
	return state, nil
}

var errRewritten = errors.New("another session has rewritten or truncated the table before it was read")

// checkFiles returns errRewritten if the files of a table have been replaced since the snapshot.
// Rows that were written again are newer than the snapshot, so the table was read as empty. From
// the time at which it was read, its lock keeps the files as they are.
func (f *follower) checkFiles(ctx context.Context, s *shape) error {
	now, err := f.asker.definitions(ctx, f.slot, f.options.Publication, []uint32{s.oid})
	switch {
	case err != nil: // the connection of the asker was lost, which says nothing about the table
		return fmt.Errorf("%w, or that is unknown: %w", errRewritten, err)
	case now.tables[0] != s.fingerprint:
		return errRewritten
	}
	return nil
}

// reportEvery is the number of rows between two calls of Trace.Reading.
const reportEvery = 100_000

func (f *follower) readRows(
	ctx context.Context, t *table, s *shape, v listwatch.Version,
) (state tableState, err error) {
	state = tableState{}
	for _, c := range f.served() {
		if c == t || c.collection != nil && c.parent == t {
			state[c] = nil // all rows may have been deleted
		}
	}
	results := f.Exec(ctx, s.selectAll())
	defer func() { err = errors.Join(err, results.Close()) }()
	n := 0
	for results.NextResult() {
		rows := results.ResultReader()
		for rows.NextRow() {
			row, of := tupleOf(rows.Values()), t
			if t.collections != nil {
				of = f.collectionOf(t, string(row[s.collectionAt].text))
			}
			o, err := of.object(s, row, v)
			switch {
			case err == nil:
				state[of] = append(state[of], o)
			case of == t:
				return nil, err
			default:
				of.fail(err)
			}
			if n++; f.options.MaxRows > 0 && n > f.options.MaxRows {
				return nil, fmt.Errorf("it has more than %d rows, which Options.MaxRows allows", f.options.MaxRows)
			}
			if n%reportEvery == 0 {
				f.options.Trace.Reading(t.config.Name, n)
			}
		}
	}
	return state, nil
}

// selectAll returns the query for all rows that the publication contains.
func (s *shape) selectAll() string {
	only := "ONLY "
	if s.partitioned {
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
