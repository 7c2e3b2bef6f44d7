package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A DB follows tables of a database. It is safe for concurrent use.
type DB struct {
	// Immutable after Open.
	config  *pgconn.Config
	options Options
	epoch   string
	tables  []*table
	group   *watchcache.Group
	asker   *asker
	writers *pool
	done    chan struct{} // closed when the DB no longer follows the tables

	mu    sync.Mutex
	stats Stats // guarded by mu
	err   error // guarded by mu: the reason of the end, or of the current interruption
}

// A table is a table that is served. Only the goroutine that follows the log changes it.
type table struct {
	Table
	cache      *watchcache.Cache
	shape      *shape
	namespaces map[string]string // by object name; unused if the identity contains the namespace
	reloaded   reload            // the reason for which the table was last read again
	trace      *Trace
	failed     bool // the table is no longer served
}

// A reload is a reason to read a table again.
type reload struct {
	reason      string
	fingerprint fingerprint
	at          time.Time
}

// Stats are counters of a [DB], and its progress.
type Stats struct {
	// Loads is the number of times that all tables were read. More than one load per hour indicates
	// a problem.
	Loads int
	// Transactions and Changes count what was applied to the tables since Open.
	Transactions, Changes uint64
	// Rows is the number of objects in all tables.
	Rows int
	// Version is the version that the tables have reached.
	Version listwatch.Version
	// Confirmed is the time at which PostgreSQL last reported its position. It does so at least
	// once per half of wal_sender_timeout.
	Confirmed time.Time
}

// ErrReplaced is the error of a DB that has ended because the versions of the database start over:
// a standby was promoted, or the DSN leads to another cluster. The program must open the database
// again, and its clients list again.
var ErrReplaced = errors.New("the database was replaced by another one, such as a promoted standby")

// Open checks the server and the tables, reads them, and follows their changes until ctx ends. If a
// table cannot be served, Open returns an error before it changes anything in the database. The
// error contains the problems of all tables. dsn is a URL or a list of keywords, as in PostgreSQL's
// programs.
//
// Errors have the text of PostgreSQL. The errors of the Sources do not.
func Open(ctx context.Context, dsn string, o Options, tables ...Table) (*DB, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, errors.New("postgres: no table was named")
	}
	db := &DB{
		config: config, options: o.withDefaults(), group: new(watchcache.Group), done: make(chan struct{}),
	}
	db.asker, db.writers = newAsker(db), newPool(config, maxWriters)
	conn, err := connect(ctx, config, true)
	if hasCode(err, insufficientPrivilege) {
		return nil, fmt.Errorf("%w; a superuser can run this: ALTER ROLE %s REPLICATION", err, identifier(config.User))
	}
	if err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, conn, tables); err != nil {
		_ = conn.Close(ctx) // return the error of prepare
		return nil, err
	}
	f := &follower{DB: db, session: conn}
	if err := f.load(ctx, nil); err != nil {
		_ = conn.Close(ctx) // return the error of load
		return nil, err
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
func (db *DB) prepare(ctx context.Context, s session, tables []Table) (err error) {
	if db.epoch, err = s.epoch(ctx); err != nil {
		return err
	}
	problems := []error{s.checkServer(ctx)}
	var all []*shape
	for _, t := range tables {
		shape, err := s.shapeOf(ctx, "", &t, listwatch.Description{})
		problems = append(problems, err)
		all = append(all, shape)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := s.publish(ctx, db.options.Publication, all); err != nil {
		return err
	}
	for i, t := range tables {
		description := listwatch.Description{
			APIVersion: cmp.Or(t.APIVersion, "v1"), Kind: cmp.Or(t.Kind, all[i].name), Fields: t.Fields,
			Epoch: db.epoch,
		}
		db.tables = append(db.tables, &table{
			Table: t, trace: db.options.Trace, namespaces: map[string]string{},
			cache: db.group.Cache(description, watchcache.Options{
				History: db.options.History, Newest: db.asker.newest, Verbatim: true,
			}),
		})
	}
	return nil
}

// Source returns the Source of a table, by the name that was passed to Open. It panics if there is
// no such table.
func (db *DB) Source(name string) listwatch.Source { return db.table(name).cache }

func (db *DB) table(name string) *table {
	for _, t := range db.tables {
		if t.Name == name {
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

// Stats returns the current counters.
func (db *DB) Stats() Stats {
	db.mu.Lock()
	s := db.stats
	db.mu.Unlock()
	s.Version = db.group.Version()
	for _, t := range db.tables {
		s.Rows += t.cache.Stats().Objects
	}
	return s
}

// run follows the tables until ctx ends. After an interruption it reads them again.
func (db *DB) run(ctx context.Context, f *follower) {
	defer close(db.done)
	for failures := 0; ; failures++ {
		began := time.Now()
		err := f.follow(ctx)
		_ = f.Close(ctx) // the connection may be broken
		if time.Since(began) > time.Minute {
			failures = 0
		}
		if ctx.Err() == nil {
			db.options.Trace.Lost(err)
		}
		if f, err = db.recover(ctx, err, failures); err != nil {
			db.end(err)
			return
		}
	}
}

// recover connects and reads the tables again. It retries until this succeeds, ctx ends or the
// database was replaced. reason is the error after which the tables must be read again.
func (db *DB) recover(ctx context.Context, reason error, failures int) (*follower, error) {
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
		if f, err = db.reopen(ctx, reason); err == nil || errors.Is(err, ErrReplaced) {
			db.note(err)
			return f, err
		}
		db.options.Trace.Lost(err)
	}
}

// reopen connects and reads the tables again. reason is the error that made this necessary.
func (db *DB) reopen(ctx context.Context, reason error) (*follower, error) {
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
		err = f.load(ctx, reason)
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
	for _, t := range db.tables {
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
	t.trace.TableFailed(t.Name, reason)
	t.cache.Fail(&listwatch.Error{
		Code: listwatch.Unavailable, Op: "postgres",
		Message: "the " + t.cache.Describe().Kind + " objects can no longer be served; the log of the server has the reason",
	})
}
