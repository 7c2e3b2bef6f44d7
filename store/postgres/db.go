package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A DB follows tables of a database. It is safe for concurrent use.
type DB struct {
	// Immutable after Open.
	config    *pgconn.Config
	options   Options
	epoch     string
	tables    []*table
	documents *table // one of tables, or nil
	group     *watchcache.Group
	asker     *asker
	writers   *pool
	cancel    context.CancelFunc
	done      chan struct{} // closed when the DB no longer follows the tables

	feeding sync.Mutex // held while the tables change; acquired before mu

	mu    sync.Mutex
	stats Stats // guarded by mu
	err   error // guarded by mu: the reason of the end, or of the current interruption
	// Guarded by mu: the position of PostgreSQL's log at the last check of the schema, and the time
	// of the oldest check whose position the tables have not reached.
	written      lsn
	writtenSince time.Time
}

// A table is a table that is served, or a collection in the table of documents. Only the goroutine
// that follows the log changes it, while it holds DB.feeding.
type table struct {
	config      Table
	description listwatch.Description
	// cache is nil for the table of documents, and for a collection that no client reads yet.
	cache      *watchcache.Cache
	shape      *shape
	namespaces map[string]string // by object name; unused if the identity contains the namespace
	hidden     hiddenRows
	reloads    reloads // those for the same reason
	trace      *Trace
	failed     bool // the table is no longer served

	// collections holds the collections of the table of documents, by name. It is nil for all other
	// tables. It, the caches in it and the hidden rows of all tables are guarded by DB.mu, and
	// change only while DB.feeding is held.
	collections map[string]*table
	*collection // nil except for a collection of documents
}

// reloads are times at which a table was read again although its definition had not changed.
type reloads struct {
	reason *tableError // nil if there was none
	count  int
	first  time.Time
}

// Stats are counters of a [DB], and its progress.
type Stats struct {
	// Loads is the number of times that all tables were read. More than one load per hour indicates
	// a problem.
	Loads int
	// Resumes is the number of times that the log was followed again without reading the tables,
	// with the help of Options.Anchor.
	Resumes int
	// Transactions and Changes count what was applied to the tables since Open.
	Transactions, Changes uint64
	// Rows is the number of objects in all tables and collections, and Hidden the number of their
	// rows that are not objects; see [Trace.RowHidden].
	Rows, Hidden int
	// Version is the version that the tables have reached.
	Version listwatch.Version
	// Confirmed is the time at which PostgreSQL last reported its position. It does so at least
	// once per half of wal_sender_timeout.
	Confirmed time.Time
	// LagBytes is the length of the log between the tables and the position of PostgreSQL at the
	// last check of the schema, and Lag the time for which the tables have not reached such a
	// position. Both are zero without checks of the schema.
	LagBytes uint64
	Lag      time.Duration
	// RetainedBytes is the length of the log that PostgreSQL retained for this DB or for the anchor
	// at the last check of the schema.
	RetainedBytes uint64
}

// setHidden replaces the hidden rows of t, and reports those that were not hidden before.
func (db *DB) setHidden(t *table, rows hiddenRows) {
	before := t.hidden
	db.mu.Lock()
	t.hidden = rows
	db.mu.Unlock()
	reports := 0
	for key, row := range rows {
		if old, ok := before[key]; ok && old.reason != errUndeclared || reports == maxHiddenReports {
			continue
		}
		reports++
		t.reportHidden(key, row)
	}
}

// noteWritten records the position of PostgreSQL's log, and the length of the log that it retains.
// It reports whether the tables have not reached the position of the last call.
func (db *DB) noteWritten(at lsn, retained uint64) (lags bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if lags = db.group.Version() < db.written.version(); !lags {
		db.writtenSince = time.Now()
	}
	db.written, db.stats.RetainedBytes = at, retained
	return lags
}

// ErrReplaced is the error of a DB that has ended because the versions of the database start over:
// a standby was promoted, or the DSN leads to another cluster. The program must open the database
// again, and its clients list again.
var ErrReplaced = errors.New("the database was replaced by another one, such as a promoted standby")

// Open checks the server and the tables, reads them, and follows their changes until ctx ends or
// the DB is closed. If a table cannot be served, Open returns an error before it changes anything
// in the database. The error contains the problems of all tables. Without tables, the DB has
// documents only; see [Options.Documents]. dsn is a URL or a list of keywords, as in PostgreSQL's
// programs.
//
// Errors have the text of PostgreSQL. The errors of the Sources do not.
func Open(ctx context.Context, dsn string, o Options, tables ...Table) (*DB, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		o.Documents = cmp.Or(o.Documents, DefaultDocuments)
	}
	db := &DB{
		config: config, options: o.withDefaults(), group: new(watchcache.Group), done: make(chan struct{}),
	}
	db.asker, db.writers = newAsker(db), newPool(config, maxWriters)
	e := &examination{options: db.options}
	if err := e.connect(ctx, config); err != nil {
		return nil, err
	}
	err = e.alone(ctx, func() error { return db.prepare(ctx, e, tables) })
	if err != nil {
		_ = e.Close(ctx) // return the error of prepare
		return nil, err
	}
	ctx, db.cancel = context.WithCancel(ctx)
	f := &follower{DB: db, session: e.session}
	if err := f.load(ctx, nil); err != nil {
		_ = e.Close(ctx) // return the error of load
		db.cancel()
		return nil, err
	}
	if db.options.Anchor != "" {
		go db.advanceAnchor(ctx)
	}
	go db.run(ctx, f)
	return db, nil
}

// New is Open for one table.
func New(ctx context.Context, dsn string, t Table) (listwatch.Source, error) {
	db, err := Open(ctx, dsn, Options{}, t)
	if err != nil {
		return nil, err
	}
	return db.tables[0].cache, nil
}

// prepare checks the server and the tables, and publishes the tables. The error contains the
// problems of all tables, so that an administrator can solve them together.
func (db *DB) prepare(ctx context.Context, e *examination, tables []Table) (err error) {
	if name := db.options.Documents; name != "" {
		if err := createDocuments(ctx, e.session, name); err != nil {
			return err
		}
		tables = append(slices.Clone(tables), Table{Name: name, documents: true})
	}
	if err := e.examine(ctx, tables); err != nil {
		return err
	}
	if err := e.problems(); err != nil {
		return err
	}
	if db.epoch, err = e.epoch(ctx); err != nil {
		return err
	}
	if e.publish != "" {
		if err := e.change(ctx, e.publish); err != nil {
			return err
		}
	}
	for i, t := range tables {
		t.APIVersion, t.Kind = cmp.Or(t.APIVersion, "v1"), cmp.Or(t.Kind, e.shapes[i].name)
		description := listwatch.Description{
			APIVersion: t.APIVersion, Kind: t.Kind, Fields: t.Fields, Epoch: db.epoch,
		}
		added := &table{config: t, trace: db.options.Trace, namespaces: map[string]string{}, hidden: hiddenRows{}}
		db.tables = append(db.tables, added)
		if t.documents {
			added.collections, db.documents = map[string]*table{}, added
			continue
		}
		added.description, added.cache = description, db.newCache(description)
	}
	return nil
}

func (db *DB) newCache(d listwatch.Description) *watchcache.Cache {
	return db.group.Cache(d, watchcache.Options{
		History: db.options.History, Newest: db.asker.newest, Verbatim: true,
	})
}

// Source returns the Source of a table, by the name that was passed to Open. It panics if there is
// no such table.
func (db *DB) Source(name string) listwatch.Source { return db.table(name).cache }

func (db *DB) table(name string) *table {
	for _, t := range db.tables {
		if t.config.Name == name && t.cache != nil {
			return t
		}
	}
	panic(fmt.Sprintf("postgres: table %q was not passed to Open", name))
}

// Ready returns nil while the DB follows the tables. After an interruption, it returns an error
// until the tables have been read again.
func (db *DB) Ready() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.err != nil {
		return errors.New("the tables are not followed at the moment")
	}
	return nil
}

// Wait waits until the DB has ended, and returns the reason: the error of the context of Open, or
// [ErrReplaced].
func (db *DB) Wait() error {
	<-db.done
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Close ends the DB and its watches, as the end of the context of Open does.
func (db *DB) Close() error {
	db.cancel()
	<-db.done
	return nil
}

// Stats returns the current counters.
func (db *DB) Stats() Stats {
	db.mu.Lock()
	defer db.mu.Unlock()
	s := db.stats
	s.Version = db.group.Version()
	if written := db.written.version(); s.Version < written {
		s.LagBytes, s.Lag = uint64(written-s.Version)/versionsPerByte, time.Since(db.writtenSince)
	}
	for _, t := range db.served() {
		s.Rows += t.cache.Stats().Objects
		s.Hidden += len(t.hidden)
	}
	return s
}

// Version returns the version that the tables have reached.
func (db *DB) Version() listwatch.Version { return db.group.Version() }

// Epoch returns a text that identifies the database and its history. It changes when versions start
// over.
func (db *DB) Epoch() string { return db.epoch }

// Compact drops the history in memory: after that, a watch that starts before the newest version
// fails with [listwatch.Expired].
func (db *DB) Compact() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, t := range db.served() {
		t.cache.Compact()
	}
}

// run follows the tables until ctx ends. After an interruption it reads them again.
func (db *DB) run(ctx context.Context, f *follower) {
	defer close(db.done)
	for failures := 0; ; failures++ {
		began := time.Now()
		err := f.follow(ctx)
		_ = f.session.Close(ctx) // the connection may be broken
		if time.Since(began) > time.Minute {
			failures = 0
		}
		if ctx.Err() == nil {
			db.options.Trace.Lost(err)
		}
		if f, err = db.recover(ctx, err, f.mayResume(err), failures); err != nil {
			db.end(err)
			return
		}
	}
}

// recover connects, and resumes or reads the tables again. It retries until this succeeds, ctx ends
// or the database was replaced. reason is the error after which this is necessary.
func (db *DB) recover(ctx context.Context, reason error, mayResume bool, failures int) (*follower, error) {
	backoff := listwatch.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for err := reason; ; failures++ {
		db.note(err)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failures > 0 {
			select {
			case <-time.After(backoff.Delay(failures - 1)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var f *follower
		if f, err = db.reopen(ctx, reason, mayResume); err == nil || errors.Is(err, ErrReplaced) {
			db.note(err)
			return f, err
		}
		db.options.Trace.Lost(err)
	}
}

// reopen connects, and resumes or reads the tables again. reason is the error that made this
// necessary.
func (db *DB) reopen(ctx context.Context, reason error, mayResume bool) (*follower, error) {
	conn, err := connect(ctx, db.config, true)
	if err != nil {
		return nil, err
	}
	f := &follower{DB: db, session: conn}
	epoch, err := conn.epoch(ctx)
	switch {
	case err != nil:
	case epoch != db.epoch:
		err = ErrReplaced
	default:
		err = f.restart(ctx, reason, mayResume)
	}
	if err != nil {
		_ = conn.Close(ctx) // return the error of load
		return nil, err
	}
	return f, nil
}

func (db *DB) note(err error) {
	db.mu.Lock()
	db.err = err
	db.mu.Unlock()
}

// end records err, and ends the watches of all tables.
func (db *DB) end(err error) {
	db.note(err)
	db.asker.close()
	db.writers.close()
	db.feeding.Lock()
	defer db.feeding.Unlock()
	for _, t := range db.tables {
		t.failed = true
	}
	for _, t := range db.served() {
		t.cache.Fail(nil)
	}
}

// fail ends the table with an error. The other tables are still served. Clients get no text from
// PostgreSQL.
func (t *table) fail(reason error) {
	if t.failed {
		return
	}
	t.failed = true
	t.trace.TableFailed(t.String(), reason)
	t.end()
	for _, c := range t.collections {
		c.end()
	}
}

// end ends the watches of t with an error.
func (t *table) end() {
	if t.cache == nil {
		return
	}
	t.cache.Fail(&listwatch.Error{
		Code: listwatch.Unavailable, Op: "postgres",
		Message: "the " + t.description.Kind + " objects can no longer be served; the log of the server has the reason",
	})
}

// String returns the names of the table and of the collection in it.
func (t *table) String() string {
	if t.collection != nil {
		return t.config.Name + ", collection " + t.name
	}
	return t.config.Name
}

// lookup returns the object at key, or nil if there is none.
func (t *table) lookup(key listwatch.Key) *listwatch.Object {
	if t.cache == nil {
		return nil
	}
	return t.cache.Lookup(key)
}

// objects returns all objects.
func (t *table) objects() []*listwatch.Object {
	if t.cache == nil {
		return nil
	}
	return t.cache.Objects()
}

// object returns the object of a row at version v.
func (t *table) object(s *shape, row tuple, v listwatch.Version) (*listwatch.Object, error) {
	if t.collection != nil {
		return t.document(s, row, v)
	}
	o, err := s.object(row, v)
	if err == nil && t.config.Verify != nil {
		err = t.config.Verify(o)
	}
	return o, err
}
