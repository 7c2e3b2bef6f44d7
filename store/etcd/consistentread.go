package etcd

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// freshnessTimeout limits the time that a read of the newest state waits.
const freshnessTimeout = 3 * time.Second

// startTimeout limits the time that the start of a collection waits without progress. It exceeds
// freshnessTimeout because no client waits, and the server would start again anyway.
const startTimeout = 30 * time.Second

// catchUp waits until the log has every event that etcd had at the time of the call. It
// returns an error of code NotYet if it cannot confirm this within freshnessTimeout.
func (b *backend) catchUp(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, freshnessTimeout)
	defer cancel()
	revision, err := b.db.revisions.Get(limited)
	if err == nil {
		err = b.reach(limited, listwatch.Version(revision))
	}
	return b.notReached(ctx, err, freshnessTimeout)
}

// catchUpAtStart is like catchUp, but it waits for as long as the log advances: etcd sends some
// 10,000 revisions a second, and a busy cluster has many more that are not compacted. It returns an
// error of code NotYet when the log has not advanced for startTimeout.
func (b *backend) catchUpAtStart(ctx context.Context) error {
	revision, err := b.db.readRevision(ctx, startTimeout)
	newest := listwatch.Version(revision)
	for advanced := time.Now(); err == nil && b.applied.Version() < newest; {
		before := b.applied.Version()
		limited, cancel := context.WithTimeout(ctx, freshnessTimeout)
		err = b.reach(limited, newest)
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		after := b.applied.Version()
		b.db.options.Trace.Replaying(b.name, int64(after), revision)
		if after > before {
			advanced = time.Now()
		}
		if time.Since(advanced) < startTimeout {
			err = nil
		}
	}
	return b.notReached(ctx, err, startTimeout)
}

// reach waits until the log has reached v.
func (b *backend) reach(ctx context.Context, v listwatch.Version) error {
	b.demandVersion(v)
	return b.applied.Wait(ctx, v)
}

// notReached converts err, the result of a wait of at most timeout, to the error for a caller whose
// context is ctx.
func (b *backend) notReached(ctx context.Context, err error, timeout time.Duration) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case b.db.lifetime.Err() != nil:
		return errClosed
	}
	code := listwatch.CodeOf(err)
	if code == listwatch.Unknown {
		code = codeOf(err)
	}
	if code == listwatch.Unavailable || code == listwatch.NotYet {
		return notFresh(err, timeout)
	}
	return clientError(ctx, "etcd", err)
}

// demandVersion records that a reader waits until the log reaches v.
func (b *backend) demandVersion(v listwatch.Version) {
	if b.applied.Version() >= v {
		return
	}
	d := &b.demand
	d.mu.Lock()
	d.version = max(d.version, v)
	d.until = time.Now().Add(freshnessTimeout)
	d.mu.Unlock()
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// isBehind reports whether a reader waits for a version that the log has not reached.
func (b *backend) isBehind() bool {
	d := &b.demand
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.applied.Version() < d.version && time.Now().Before(d.until) {
		return true
	}
	d.version = 0
	return false
}

// notFresh returns the error for a request that needs the newest state, if this state could not be
// read within timeout.
func notFresh(cause error, timeout time.Duration) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: "the newest state could not be read from etcd within " + timeout.String(),
		Details: &listwatch.Details{RetryAfter: retryAfter},
		Err:     cause,
	}
}
