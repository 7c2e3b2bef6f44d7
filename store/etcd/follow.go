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

// run follows etcd until ctx ends. After any failure it resumes at the revision after the last
// applied revision. It loads the collection again only if events were lost.
func (b *backend) run(ctx context.Context) {
	trace := b.db.options.Trace
	var reconnect, reload backoff
	for ctx.Err() == nil {
		before := b.applied.Version()
		err := b.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if b.applied.Version() > before {
			reconnect = backoff{}
		}
		if gap, ok := errors.AsType[*gapError](err); ok {
			trace.Relisted(b.name, gap)
			if err = b.load(ctx); err == nil {
				reload.wait(ctx)
				continue
			}
		}
		b.following.Store(false)
		trace.WatchLost(b.name, requestError(ctx, "etcd: watch "+b.keys.dir, err))
		reconnect.wait(ctx)
	}
}

// A backoff delays retries. The delay doubles with each retry that follows the previous one
// closely.
type backoff struct {
	delay time.Duration
	last  time.Time
}

const (
	minDelay = 20 * time.Millisecond
	maxDelay = 2 * time.Second
	// backoffReset is the time without a retry after which the delay is minDelay again.
	backoffReset = 10 * time.Second
)

func (b *backoff) wait(ctx context.Context) {
	if now := time.Now(); now.Sub(b.last) > backoffReset {
		b.delay = minDelay
	}
	timer := time.NewTimer(b.delay/2 + rand.N(b.delay/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	b.delay, b.last = min(2*b.delay, maxDelay), time.Now()
}

// follow watches etcd from the revision after the last applied revision. It returns the reason
// why the watch ended, which is a *gapError if the watch cannot be resumed.
func (b *backend) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	s, err := openStream(ctx, b.db, b.keys, int64(b.applied.Version())+1)
	if !timeout.Stop() && err == nil {
		err = errSilent
	}
	if err != nil {
		return err
	}
	answered := make(chan struct{}, 1)
	var requester sync.WaitGroup
	defer requester.Wait()
	defer s.close()
	requester.Go(func() { b.requestProgress(s, answered) })
	b.counted = time.Time{}
	for {
		got, err := s.receive()
		if err == nil {
			err = b.handle(ctx, s, got)
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

// handle applies a response of a watch.
func (b *backend) handle(ctx context.Context, s *watchStream, got *pb.WatchResponse) error {
	if err := b.db.checkHeader(got.Header, 0); err != nil {
		return err
	}
	switch {
	case got.CompactRevision > 0:
		return gapf("etcd has compacted revision %d, but events were only received up to %d", got.CompactRevision,
			b.applied.Version())
	case got.Canceled:
		return canceled(got.CancelReason)
	case got.Created:
		s.created = true
		return b.checkResumed(ctx, s)
	case !s.created && len(got.Events) == 0:
		return nil
	case len(got.Events) == 0:
		return b.handleProgress(ctx, listwatch.Version(got.Header.Revision))
	}
	for events := got.Events; len(events) > 0; {
		v := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision != v })
		if n < 0 {
			n = len(events)
		}
		if err := b.handleRevision(s, listwatch.Version(v), events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// checkResumed checks that etcd still has revision s.from-1, the newest revision that the log has
// applied. Otherwise s may lack an event even if etcd accepts s.from: a watch from exactly the
// compacted revision may lack a delete of that revision (etcd-io/etcd#18089, #19179). The check
// runs after the watch was created: if revision s.from-1 exists now, it also existed when the
// watch started.
func (b *backend) checkResumed(ctx context.Context, s *watchStream) error {
	_, err := b.db.get(ctx, b.db.options.Timeout, b.keys.dir, clientv3.WithRev(s.from-1), clientv3.WithCountOnly())
	switch {
	case err == nil:
		b.following.Store(true)
		b.db.options.Trace.WatchResumed(b.name, s.from)
		return nil
	case is(err, rpctypes.ErrCompacted):
		return gapf("etcd has compacted revision %d, the newest one applied", s.from-1)
	case is(err, rpctypes.ErrFutureRev):
		_, err := b.db.readRevision(ctx, freshnessTimeout) // fails if etcd was replaced or restored
		return cmp.Or(err, rpctypes.ErrFutureRev)
	}
	return err
}

// handleRevision applies the events of one revision. It ignores duplicates.
func (b *backend) handleRevision(s *watchStream, v listwatch.Version, events []*mvccpb.Event) error {
	switch {
	case v > b.applied.Version():
		return b.apply(v, events)
	case int64(v) < s.from || b.isApplied(v, events):
		b.db.options.Trace.DuplicatesDropped(b.name, int64(v))
		return nil
	}
	return gapf("etcd sent an event of revision %d after it had reported progress up to %d", v, b.applied.Version())
}

func (b *backend) isApplied(v listwatch.Version, events []*mvccpb.Event) bool {
	for _, e := range events {
		key, err := b.keys.key(string(e.Kv.Key))
		if err == nil && !b.unreadable[string(e.Kv.Key)] && !b.ContainsWrite(v, key) {
			return false
		}
	}
	return true
}

func (b *backend) apply(v listwatch.Version, events []*mvccpb.Event) error {
	records := make([]history.Record, 0, len(events))
	for i, e := range events {
		if slices.ContainsFunc(events[:i], func(before *mvccpb.Event) bool {
			return bytes.Equal(before.Kv.Key, e.Kv.Key)
		}) {
			// A transaction changes a key at most once, so a second event of the same key and
			// revision is a duplicate.
			b.db.options.Trace.DuplicatesDropped(b.name, int64(v))
			continue
		}
		r, err := b.record(v, e)
		if err != nil {
			return err
		}
		if r.Old != nil || r.New != nil {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(x, y history.Record) int { return keyOf(x).Compare(keyOf(y)) })
	b.Append(records...)
	b.applied.Advance(v)
	return nil
}

func keyOf(r history.Record) listwatch.Key {
	if r.New != nil {
		return r.New.Key
	}
	return r.Old.Key
}

// record returns the record of e. Both r.Old and r.New are nil if the key is unreadable and was
// unreadable before. If e does not match the state, an event was lost, and the error is a
// *gapError.
func (b *backend) record(v listwatch.Version, e *mvccpb.Event) (r history.Record, err error) {
	path := string(e.Kv.Key)
	key, err := b.keys.key(path)
	if err != nil {
		b.setUnreadable(path, e.Type == mvccpb.Event_PUT, unreadableKey(e.Kv.Key, err))
		return r, nil
	}
	r.Version = v
	r.Old = b.Log.Get(key)
	existed := r.Old != nil || b.unreadable[path]
	switch created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision; {
	case created && existed:
		return r, gapf("%s was created at revision %d, but its earlier delete was not received", path, v)
	case !created && !existed:
		return r, gapf("%s was modified at revision %d, but its creation was not received", path, v)
	}
	b.leases.set(key, v, e.Kv.Lease) // 0 for a delete
	if e.Type == mvccpb.Event_DELETE {
		b.setUnreadable(path, false, nil)
		return r, nil
	}
	r.New, err = b.read(key, e.Kv)
	b.setUnreadable(path, err != nil, err)
	return r, nil
}

// setUnreadable records whether a key is unreadable, and why.
func (b *backend) setUnreadable(path string, unreadable bool, reason error) {
	if !unreadable {
		if delete(b.unreadable, path); len(b.unreadable) == 0 {
			b.keyError.Store(nil)
		}
		return
	}
	b.unreadable[path] = true
	b.keyError.Store(&reason)
	b.db.options.Trace.Unreadable(b.name, path, reason)
}

const (
	// idleProgressInterval is the time between progress requests while no reader waits for a
	// version. These requests advance bookmarks and detect a dead connection.
	idleProgressInterval = time.Second
	// minProgressDelay is the time after which progress is requested again if the answer is
	// missing or does not reach the version that a reader waits for. The delay doubles each
	// time, up to maxProgressDelay.
	minProgressDelay = 5 * time.Millisecond
	maxProgressDelay = 100 * time.Millisecond
	// maxSilence is the time without a message after which a stream is closed.
	maxSilence = 8 * time.Second
)

var errSilent = &listwatch.Error{
	Code: listwatch.Unavailable, Message: "etcd has not sent a message for " + maxSilence.String(),
}

// requestProgress sends progress requests to etcd until s ends: at regular intervals, and at once
// when a reader starts to wait for a version. answered receives a value after each response
// without events, because that response may be the answer to a progress request.
func (b *backend) requestProgress(s *watchStream, answered <-chan struct{}) {
	timer := time.NewTimer(idleProgressInterval)
	defer timer.Stop()
	outstanding, delay := false, minProgressDelay
	for {
		request := false
		select {
		case <-s.ctx.Done():
			return
		case <-b.demand.signal:
			request, delay = !outstanding, minProgressDelay
		case <-answered:
			outstanding = false
		case <-timer.C:
			request = true
		}
		if time.Since(time.Unix(0, s.lastMessage.Load())) > maxSilence {
			s.cancel(errSilent)
			return
		}
		if request {
			if s.requestProgress() != nil {
				return // receive returns the error
			}
			outstanding = true
		}
		wait := idleProgressInterval
		if b.isBehind() {
			wait, delay = delay, min(2*delay, maxProgressDelay)
		}
		timer.Reset(wait)
	}
}

// countInterval is the time between two counts of the objects in etcd.
const countInterval = time.Minute

// handleProgress advances the log to v, because etcd has sent every event up to v. Before
// the first advance on a stream, and then once per countInterval, it compares the number of
// objects with the number in etcd.
func (b *backend) handleProgress(ctx context.Context, v listwatch.Version) error {
	if v >= b.applied.Version() && time.Since(b.counted) >= countInterval {
		if err := b.checkCount(ctx, v); err != nil {
			return err
		}
	}
	b.applied.Advance(v)
	return nil
}

// checkCount compares the number of objects at v with the number in etcd. It detects events that a
// watch has lost silently, as in etcd-io/etcd#17529, #18089 and #20655. It cannot detect a lost
// update, which does not change the number; the next event of that object corrects it.
func (b *backend) checkCount(ctx context.Context, v listwatch.Version) error {
	got, err := b.db.get(ctx, tryTimeout, b.keys.dir, clientv3.WithRange(b.keys.end()), clientv3.WithRev(int64(v)),
		clientv3.WithCountOnly())
	if err != nil {
		return nil //nolint:nilerr // v was compacted or etcd is unreachable; the next call retries
	}
	b.counted = time.Now()
	if have := int64(b.Stats().Objects + len(b.unreadable)); have != got.Count {
		return gapf("etcd has %d keys at revision %d, but its events lead to %d", got.Count, v, have)
	}
	return nil
}
