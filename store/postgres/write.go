package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// maxWriters is the number of transactions that a DB executes at the same time.
const maxWriters = 4

// check returns an error if the members of an object do not fit the columns.
func (c *collection) check(ctx context.Context, old *listwatch.Object, data []byte) error {
	if s := c.table.written.Load(); s != nil {
		if _, err := s.assign(old, data); err == nil {
			return nil
		}
	}
	return c.with(ctx, func(_ context.Context, _ session, s *shape) error {
		_, err := s.assign(old, data)
		return err
	})
}

// assign returns the values that a write gives to the columns. A write of a document sets the whole
// object, and any other write sets the columns that have changed.
func (c *collection) assign(s *shape, change store.Change) ([]assignment, error) {
	if s.documentAt == absent {
		return s.assign(change.Old, change.New.Seal(0).Data)
	}
	document := assignment{at: s.documentAt, text: change.New.Unversioned().Data}
	if change.Old != nil {
		return []assignment{document}, nil
	}
	return []assignment{
		{at: s.collectionAt, text: []byte(c.name)},
		{at: s.namespaceAt, text: []byte(change.Key.Namespace)},
		{at: s.nameFrom[0], text: []byte(change.Key.Name)},
		document,
	}, nil
}

// transactionTimeout limits the time of a transaction, including that until a connection is free.
const transactionTimeout = 10 * time.Second

// with calls f with a connection and the shape of the table. The shape may be out of date, so if f
// fails, and the definition of the table has changed, with calls f again.
func (c *collection) with(ctx context.Context, f func(context.Context, session, *shape) error) error {
	limited, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	err := c.db.writes.with(limited, func(s session) error {
		publication, t := c.db.options.Publication, c.table
		if known := t.written.Load(); known != nil {
			err := f(limited, s, known)
			if err == nil || s.IsClosed() {
				return err
			}
			now, queryErr := s.definitions(limited, nil, publication, known.oid)
			if queryErr != nil || now.tables[known.oid].definition == known.fingerprint.definition {
				return err
			}
		}
		facts, err := s.facts(limited, t.config.Name)
		if err != nil {
			return err
		}
		fresh, err := s.shapeOf(limited, publication, &t.config, facts)
		if err != nil {
			return err
		}
		t.written.Store(fresh)
		return f(limited, s, fresh)
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
func (c *collection) Commit(ctx context.Context, change store.Change) (o *listwatch.Object, err error) {
	if err := c.cache.Wait(ctx, 0); err != nil {
		return nil, err // the table has failed
	}
	for try := range maxTries {
		var done *written
		err = c.with(ctx, func(ctx context.Context, session session, s *shape) (err error) {
			write := &rowWrite{session: session, collection: c, shape: s, change: change}
			done, err = write.run(ctx)
			return err
		})
		switch {
		case err == nil && done == nil: // no value has changed
			return change.Old, nil
		case err == nil:
			return c.await(ctx, change, done)
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
func (c *collection) await(ctx context.Context, change store.Change, done *written) (*listwatch.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	o, v, err := c.receive(ctx, done)
	if errors.Is(err, listwatch.Expired) {
		o, err = c.Get(ctx, done.key)
		v = c.db.group.Version()
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
	case change.New == nil:
		return change.Old.At(v), nil
	}
	return o, nil
}

// matches reports whether o, which is nil if there is no object, has the content that was written.
func (w *written) matches(o *listwatch.Object) bool {
	if o == nil || w.object == nil {
		return o == nil && w.object == nil
	}
	return sameContent(w.object, o)
}

// wakeAfter is the time after which a write that has not received its event wakes the process that
// sends the log; see flush.
const wakeAfter = 100 * time.Millisecond

// receive waits for the event of a write. Until the commit the row was locked, so the write is the
// first change of the object after done.locked.
func (c *collection) receive(ctx context.Context, done *written) (*listwatch.Object, listwatch.Version, error) {
	watch, err := c.Watch(ctx, listwatch.Query{
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
		c.db.flush(ctx)
		_, err = watch.Next(ctx, batch[:])
	}
	return batch[0].Object, batch[0].Version, err
}

// isTransient reports whether a transaction was not executed, and may succeed if it is tried again.
func isTransient(err error) bool {
	return hasCode(err, serializationFailure) || hasCode(err, deadlockDetected) || errors.Is(err, errNotBegun)
}
