package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

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
		if s.silence() > maxSilence {
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
