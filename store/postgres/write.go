package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// maxWriters is the number of transactions that a DB executes at the same time.
const maxWriters = 4

// Table returns a table as a collection that can also be written, by the name that was passed to
// Open. The role needs INSERT, UPDATE and DELETE. APIVersion, Kind, Namespaced, Fields and
// Generation of spec are set to those of the table. If spec.CheckName is nil, all names are
// accepted, and if spec.CheckNamespace is nil, all namespaces. Table panics if there is no such
// table.
//
// A create inserts a row. Columns that the object does not name have their defaults. If the key has
// a default, such as a sequence, the object needs no name. An update changes only the columns whose
// members have changed; a member that is missing becomes NULL. The columns of the key, the
// namespace, the uid and the creation time cannot be updated. An object with a member for which
// there is no column is refused, and so is a value that its column cannot hold.
//
// A column may be both a label and a member of the spec. A write may change either of them, and a
// missing label means no change.
//
// A write is one transaction. It fails with Conflict if the row no longer has the content of the
// object that the writer has read. Resource versions of another server of the same tables are
// accepted, unless they are older than the state with which this server has started, or between two
// states that it knows.
func (db *DB) Table(name string, spec store.CollectionSpec) *store.Collection {
	t := db.table(name)
	w := &writer{Source: t.cache, db: db, table: t}
	d := t.description
	spec.APIVersion, spec.Kind, spec.Fields = d.APIVersion, d.Kind, d.Fields
	spec.Namespaced, spec.GeneratedNames = t.config.Namespace != "", true
	spec.Generation = store.GenerationRule{None: true}
	accept := func(string) error { return nil }
	if spec.CheckName == nil {
		spec.CheckName = accept
	}
	if spec.CheckNamespace == nil {
		spec.CheckNamespace = accept
	}
	before := spec.Admit
	spec.Admit = func(ctx context.Context, old *listwatch.Object, data []byte) (_ []byte, err error) {
		if before != nil {
			if data, err = before(ctx, old, data); err != nil {
				return nil, err
			}
		}
		return data, w.check(ctx, old, data)
	}
	return store.New(spec, w)
}

// A writer is the Backend of a table or a collection. It writes by SQL, and reads what the cache
// has received.
type writer struct {
	listwatch.Source // the cache
	db               *DB
	table            *table
	shape            atomic.Pointer[shape] // as it was when a write last read it, or nil
}

// Unwrap returns the cache, so that its description, sizes and unions are found.
func (w *writer) Unwrap() listwatch.Source { return w.Source }

// Get implements [store.Backend].
func (w *writer) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	return w.table.cache.Get(ctx, key)
}

// UnchangedSince implements the optional method of [store.Backend].
func (w *writer) UnchangedSince(o *listwatch.Object, v listwatch.Version) bool {
	return w.db.group.UnchangedSince(o, v)
}

// check returns an error if the members of an object do not fit the columns.
func (w *writer) check(ctx context.Context, old *listwatch.Object, data []byte) error {
	if s := w.shape.Load(); s != nil {
		if _, err := s.assign(old, data); err == nil {
			return nil
		}
	}
	return w.with(ctx, func(_ context.Context, _ session, s *shape) error {
		_, err := s.assign(old, data)
		return err
	})
}

// transactionTimeout limits the time of a transaction, including that until a connection is free.
const transactionTimeout = 10 * time.Second

// with calls f with a connection and the shape of the table. The shape may be out of date, so if f
// fails, and the definition of the table has changed, with calls f again.
func (w *writer) with(ctx context.Context, f func(context.Context, session, *shape) error) error {
	limited, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	err := w.db.writers.with(limited, func(c session) error {
		publication := w.db.options.Publication
		known := w.shape.Load()
		if known != nil {
			err := f(limited, c, known)
			if err == nil || c.IsClosed() {
				return err
			}
			now, queryErr := c.definitions(limited, nil, publication, known.oid)
			if queryErr != nil || now.tables[known.oid].definition == known.fingerprint.definition {
				return err
			}
		}
		facts, err := c.facts(limited, w.table.config.Name)
		if err != nil {
			return err
		}
		fresh, err := c.shapeOf(limited, publication, &w.table.config, facts)
		if err != nil {
			return err
		}
		w.shape.Store(fresh)
		return f(limited, c, fresh)
	})
	_, refused := errors.AsType[listwatch.Cause](err)
	if refused || err == nil || listwatch.CodeOf(err) != listwatch.Unknown {
		return err
	}
	return unavailable(ctx, err)
}

// maxTries is the number of times that a transaction is tried if it fails because of others that
// run at the same time, or because its connection was lost before it began.
const maxTries = 5

// Commit implements [store.Backend].
func (w *writer) Commit(ctx context.Context, c store.Change) (o *listwatch.Object, err error) {
	if err := w.table.cache.Wait(ctx, 0); err != nil {
		return nil, err // the table has failed
	}
	for try := range maxTries {
		var done *written
		err = w.with(ctx, func(ctx context.Context, session session, s *shape) (err error) {
			write := &rowWrite{
				session: session, table: w.table, shape: s, change: c, showExceptions: w.db.options.ShowExceptions,
			}
			done, err = write.run(ctx)
			return err
		})
		switch {
		case err == nil && done == nil: // no value has changed
			return c.Old, nil
		case err == nil:
			return w.await(ctx, c, done)
		case !isTransient(err):
			return nil, err
		}
		select {
		case <-time.After(rand.N(time.Millisecond << (2 * try))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, err
}

// awaitTimeout is the time for which a write waits until the cache has received it.
const awaitTimeout = 3 * time.Second

// await returns the object that the cache has received for a write. If the cache has skipped
// changes meanwhile, because the table was read again, this is the newest object, provided that it
// has the content that was written.
func (w *writer) await(ctx context.Context, c store.Change, done *written) (*listwatch.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	o, v, err := w.receive(ctx, done)
	if errors.Is(err, listwatch.Expired) {
		o, err = w.Get(ctx, done.key)
		v = w.db.group.Version()
		if err == nil && !done.matches(o) {
			err = errors.New("another writer has changed the object since")
		}
	}
	switch {
	case err != nil:
		return nil, &listwatch.Error{
			Code: listwatch.NotYet, Op: "postgres", Err: err,
			Message: "the row was written, but this server has not received the change yet; read it again",
		}
	case c.New == nil:
		return c.Old.At(v), nil
	}
	return o, nil
}

// matches reports whether o, which is nil if there is no object, has the content that was written.
func (w *written) matches(o *listwatch.Object) bool {
	if o == nil || w.object == nil {
		return o == nil && w.object == nil
	}
	return w.shape.sameContent(w.object, o)
}

// wakeAfter is the time after which a write that has not received its event wakes the process that
// sends the log; see flush.
const wakeAfter = 100 * time.Millisecond

// receive waits for the event of a write. Until the commit the row was locked, so the write is the
// first change of the object after done.locked.
func (w *writer) receive(ctx context.Context, done *written) (*listwatch.Object, listwatch.Version, error) {
	watch, err := w.table.cache.Watch(ctx, listwatch.Query{
		Selection: listwatch.Selection{Namespace: done.key.Namespace, Name: done.key.Name},
		Start:     listwatch.StartAt, Version: done.locked.version(), InitialEvents: listwatch.InitialEventsNo,
	})
	if err != nil {
		return nil, 0, err
	}
	defer watch.Close()
	var batch [1]listwatch.Event
	moment, cancel := context.WithTimeout(ctx, wakeAfter)
	defer cancel()
	if _, err = watch.Next(moment, batch[:]); err != nil && moment.Err() != nil && ctx.Err() == nil {
		w.db.asker.flush(ctx)
		_, err = watch.Next(ctx, batch[:])
	}
	return batch[0].Object, batch[0].Version, err
}

// isTransient reports whether a transaction was not executed, and may succeed if it is tried again.
func isTransient(err error) bool {
	return hasCode(err, serializationFailure) || hasCode(err, deadlockDetected) || errors.Is(err, errNotBegun)
}
