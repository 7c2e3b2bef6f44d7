package etcd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// run follows etcd until ctx ends. Whatever happens to the watch, it goes on from the revision after the head of the log; only where events are lost
// for good is the collection listed again.
func (b *backend) run(ctx context.Context) {
	trace := b.db.options.Trace
	var lost, relisted pause
	for ctx.Err() == nil {
		before := b.head.Version()
		err := b.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if b.head.Version() > before {
			lost = pause{}
		}
		if g, ok := errors.AsType[*gap](err); ok {
			trace.Relisted(b.name, g)
			if err = b.load(ctx); err == nil {
				relisted.wait(ctx)
				continue
			}
		}
		trace.WatchLost(b.name, failed(ctx, "etcd: watch "+b.location.dir, err))
		lost.wait(ctx)
	}
}

// A pause is what lies between two tries: it grows while they follow each other closely.
type pause struct {
	next time.Duration
	last time.Time
}

const (
	pauseMin = 20 * time.Millisecond
	pauseMax = 2 * time.Second
	// calm is how long nothing must have gone wrong for a pause to be short again.
	calm = 10 * time.Second
)

func (p *pause) wait(ctx context.Context) {
	if now := time.Now(); now.Sub(p.last) > calm {
		p.next = pauseMin
	}
	timer := time.NewTimer(p.next/2 + rand.N(p.next/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	p.next, p.last = min(2*p.next, pauseMax), time.Now()
}

// follow watches from the revision after the head until the watch ends, and returns why: a *gap where it can't be resumed.
func (b *backend) follow(ctx context.Context) error {
	from := int64(b.head.Version()) + 1
	answered := make(chan struct{}, 1)
	b.wanted.heard.Store(time.Now().UnixNano())
	opening, opened := context.WithCancelCause(ctx)
	defer opened(nil)
	late := time.AfterFunc(silence, func() { opened(errSilent) })
	s, err := b.db.openStream(opening, b.location, from)
	if !late.Stop() && err == nil {
		err = errSilent
	}
	if err != nil {
		return err
	}
	s.heard = func() { b.wanted.heard.Store(time.Now().UnixNano()) }
	var asker sync.WaitGroup
	defer asker.Wait()
	defer s.close()
	asker.Go(func() { b.ask(s, answered) })
	b.audited = time.Time{}
	for {
		got, err := s.receive()
		if err == nil {
			err = b.take(ctx, s, got)
		}
		if err != nil {
			return err
		}
		if len(got.Events) == 0 {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	}
}

// take does what a response says.
func (b *backend) take(ctx context.Context, s *stream, got *pb.WatchResponse) error {
	if err := b.db.check(got.Header, 0); err != nil {
		return err
	}
	switch {
	case got.CompactRevision > 0:
		return gapf("etcd has compacted revision %d, and events were seen up to %d", got.CompactRevision, b.head.Version())
	case got.Canceled:
		return canceled(got)
	case got.Created:
		s.created = true
		return b.checkResumed(ctx, s)
	case !s.created && len(got.Events) == 0:
		return nil
	case len(got.Events) == 0:
		return b.progress(ctx, listwatch.Version(got.Header.Revision))
	}
	for events := got.Events; len(events) > 0; {
		v := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision != v })
		if n < 0 {
			n = len(events)
		}
		if err := b.takeGroup(s, listwatch.Version(v), events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func canceled(got *pb.WatchResponse) error {
	if got.CancelReason == "" {
		return errors.New("etcd ended the watch")
	}
	return reasonOf(got.CancelReason)
}

// checkResumed makes sure that s begins where the log ends. A watch from the very revision that was compacted may lack a delete of that revision
// (etcd-io/etcd#18089, #19179), so the one before must still be there; it was asked for after the watch began, so it is there for the watch too.
func (b *backend) checkResumed(ctx context.Context, s *stream) error {
	_, err := b.db.get(ctx, b.db.options.Timeout, b.location.dir, clientv3.WithRev(s.from-1), clientv3.WithCountOnly())
	switch {
	case err == nil:
		b.db.options.Trace.WatchResumed(b.name, s.from)
		return nil
	case is(err, rpctypes.ErrCompacted):
		return gapf("etcd has compacted revision %d, the newest that was seen", s.from-1)
	case is(err, rpctypes.ErrFutureRev):
		_, err := b.db.readRevision(ctx) // finds out what is wrong
		return cmp.Or(err, rpctypes.ErrFutureRev)
	}
	return err
}

// takeGroup takes the events of one version into the log.
func (b *backend) takeGroup(s *stream, v listwatch.Version, events []*mvccpb.Event) error {
	switch {
	case v > b.head.Version():
		return b.apply(v, events)
	case int64(v) < s.from || b.known(v, events):
		// The log had it when the watch was opened, or has it since.
		b.db.options.Trace.DuplicatesDropped(b.name, int64(v))
		return nil
	}
	return gapf("etcd sent an event of revision %d after it had said that everything up to %d was sent", v, b.head.Version())
}

func (b *backend) known(v listwatch.Version, events []*mvccpb.Event) bool {
	for _, e := range events {
		key, err := b.location.key(string(e.Kv.Key))
		if err == nil && !b.hidden[string(e.Kv.Key)] && !b.ContainsWrite(v, key) {
			return false
		}
	}
	return true
}

func (b *backend) apply(v listwatch.Version, events []*mvccpb.Event) error {
	changes := make([]history.Record, 0, len(events))
	for i, e := range events {
		if slices.ContainsFunc(events[:i], func(before *mvccpb.Event) bool { return bytes.Equal(before.Kv.Key, e.Kv.Key) }) {
			b.db.options.Trace.DuplicatesDropped(b.name, int64(v)) // a transaction changes no key twice
			continue
		}
		c, err := b.change(v, e)
		if err != nil {
			return err
		}
		if c.Old != nil || c.New != nil {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(x, y history.Record) int { return keyOf(x).Compare(keyOf(y)) })
	b.Append(changes...)
	b.head.Advance(v)
	return nil
}

func keyOf(c history.Record) listwatch.Key {
	if c.New != nil {
		return c.New.Key
	}
	return c.Old.Key
}

// change returns what e does to the collection; nothing where neither before nor after there is an object. It is an error where e does not follow from
// what is there: then an event was lost.
func (b *backend) change(v listwatch.Version, e *mvccpb.Event) (c history.Record, err error) {
	path := string(e.Kv.Key)
	key, err := b.location.key(path)
	if err != nil {
		b.hide(path, e.Type == mvccpb.Event_PUT, unreadable(e.Kv.Key, err))
		return c, nil
	}
	c.Version = v
	c.Old = b.Log.Get(key)
	there := c.Old != nil || b.hidden[path]
	switch created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision; {
	case created && there:
		return c, gapf("%s was created at revision %d, and its end before that was not seen", path, v)
	case !created && !there:
		return c, gapf("%s was changed at revision %d, and its beginning was not seen", path, v)
	}
	if e.Type == mvccpb.Event_DELETE {
		b.hide(path, false, nil)
		return c, nil
	}
	c.New, err = b.read(key, e.Kv)
	b.hide(path, err != nil, err)
	return c, nil
}

// hide notes whether a key holds no object.
func (b *backend) hide(path string, hidden bool, why error) {
	if !hidden {
		if delete(b.hidden, path); len(b.hidden) == 0 {
			b.odd.Store(nil)
		}
		return
	}
	b.hidden[path] = true
	b.odd.Store(&why)
	b.db.options.Trace.Unreadable(b.name, path, why)
}
