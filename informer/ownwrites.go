package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// OwnWriteTimeout is the time for which [Informer.Track] and package controller wait until an
// informer has received a write.
const OwnWriteTimeout = 10 * time.Second

// A WriteLog collects the writes of a piece of work that are made through [Informer.Track]. Such a
// write returns at once, and WaitForInformers waits for all of them. Package controller has a
// WriteLog for each call of the function to reconcile. A WriteLog is safe for concurrent use.
type WriteLog struct {
	mu      sync.Mutex
	entries []entryOfLog // guarded by mu; one for each informer
}

// An entryOfLog holds the writes of one informer.
type entryOfLog struct {
	informer follower
	writes
}

// A follower is an Informer of any type.
type follower interface {
	awaitWrites(ctx context.Context, w writes) error
}

// writes describes the writes that an informer has to receive.
type writes struct {
	// version is the newest version, or zero if no response had one. restarts is the number of
	// times that the versions had started over when the response arrived, as far as the informer
	// knew.
	version  listwatch.Version
	restarts uint32
	// deleted holds the objects that were deleted at an unknown version.
	deleted []deletion
	// unknown is true if there are other writes of unknown version.
	unknown bool
}

// A deletion records that the object at key was deleted when its version was before.
type deletion struct {
	key    listwatch.Key
	before listwatch.Version
}

type writeLogKey struct{}

// WithWriteLog returns a context whose writes are collected in the WriteLog.
func WithWriteLog(ctx context.Context) (context.Context, *WriteLog) {
	l := new(WriteLog)
	return context.WithValue(ctx, writeLogKey{}, l), l
}

// Len returns the number of informers that may lack writes.
func (l *WriteLog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// add adds w, writes that i has to receive.
func (l *WriteLog) add(i follower, w writes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := slices.IndexFunc(l.entries, func(e entryOfLog) bool { return e.informer == i })
	if n < 0 {
		l.entries = append(l.entries, entryOfLog{i, w})
		return
	}
	e := &l.entries[n]
	if w.restarts > e.restarts || w.restarts == e.restarts && w.version > e.version {
		e.restarts, e.version = w.restarts, w.version
	}
	e.unknown = e.unknown || w.unknown
	e.deleted = append(e.deleted, w.deleted...)
}

// WaitForInformers blocks until each informer has received the writes that were made through it,
// and removes them from the log. If the deadline of ctx ends first, the error has code NotYet and
// names the version. If ctx is canceled, the error is ctx.Err(). Otherwise it is an error of
// [Informer.WaitForVersion], or of the list that it requests if a response had no version.
func (l *WriteLog) WaitForInformers(ctx context.Context) error {
	for e, ok := l.pop(); ok; e, ok = l.pop() {
		if err := e.informer.awaitWrites(ctx, e.writes); err != nil {
			l.add(e.informer, e.writes)
			return err
		}
	}
	return nil
}

// pop removes and returns the writes of one informer. ok is false if there are none.
func (l *WriteLog) pop() (e entryOfLog, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return e, false
	}
	last := len(l.entries) - 1
	e, l.entries = l.entries[last], l.entries[:last]
	return e, true
}

// A tracked Store notes its writes for an informer.
type tracked[T any] struct {
	listwatch.Store
	informer *Informer[T]
}

// Unwrap returns the Store that performs the writes.
func (t *tracked[T]) Unwrap() listwatch.Source { return t.Store }

// Create implements [listwatch.Writer].
func (t *tracked[T]) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	o, err := t.Store.Create(ctx, data)
	return t.wrote(ctx, o, err)
}

// Replace implements [listwatch.Writer].
func (t *tracked[T]) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	o, err := t.Store.Replace(ctx, key, data)
	return t.wrote(ctx, o, err)
}

// Patch implements [listwatch.Patcher].
func (t *tracked[T]) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (*listwatch.Object, error) {
	patcher, ok := t.Store.(listwatch.Patcher)
	if !ok {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "patch", Message: fmt.Sprintf("a %T cannot patch objects", t.Store),
		}
	}
	o, err := patcher.Patch(ctx, key, p)
	return t.wrote(ctx, o, err)
}

// Delete implements [listwatch.Writer].
func (t *tracked[T]) Delete(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
) (*listwatch.Object, error) {
	o, err := t.Store.Delete(ctx, key, p)
	if o != nil || err != nil || p.Version == 0 {
		return t.wrote(ctx, o, err)
	}
	return nil, t.note(ctx, writes{deleted: []deletion{{key, p.Version}}})
}

// wrote notes a write with the result o and err, and returns this result.
func (t *tracked[T]) wrote(ctx context.Context, o *listwatch.Object, err error) (*listwatch.Object, error) {
	switch {
	case err == nil && o != nil && o.Version != 0:
		return o, t.note(ctx, writes{version: o.Version})
	case err == nil:
		return o, t.note(ctx, writes{unknown: true})
	case !isRefusal(err):
		if l, ok := ctx.Value(writeLogKey{}).(*WriteLog); ok {
			_, restarts, _ := t.informer.state.fifo.progress()
			l.add(t.informer, writes{unknown: true, restarts: restarts})
		}
	}
	return o, err
}

// isRefusal reports whether err says that a write was not performed.
func isRefusal(err error) bool {
	switch listwatch.CodeOf(err) {
	case listwatch.Invalid, listwatch.NotFound, listwatch.Conflict, listwatch.AlreadyExists,
		listwatch.Unauthorized, listwatch.Forbidden, listwatch.TooSlow:
		return true
	}
	return false
}

// note adds w to the WriteLog of ctx. If ctx has none, it waits until the informer has w.
func (t *tracked[T]) note(ctx context.Context, w writes) error {
	i := t.informer
	_, w.restarts, _ = i.state.fifo.progress()
	if l, ok := ctx.Value(writeLogKey{}).(*WriteLog); ok {
		l.add(i, w)
		return nil
	}
	if !i.state.started.Load() || i.isDone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, OwnWriteTimeout)
	defer cancel()
	err := i.awaitWrites(ctx, w)
	if i.isDone() {
		return nil
	}
	return err
}

// notYet replaces err by an error of code NotYet if err is due to the deadline of ctx.
func notYet(ctx context.Context, err error, op, message string) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &listwatch.Error{Code: listwatch.NotYet, Op: op, Message: message}
}
