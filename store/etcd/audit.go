package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
)

// auditEvery is how often the number of objects is compared with that of etcd, while it can be.
const auditEvery = time.Minute

// progress moves the head on: etcd has sent everything up to v. Before it is believed for the first time on a stream, it is checked.
func (b *backend) progress(ctx context.Context, v listwatch.Version) error {
	if v >= b.head.Version() && time.Since(b.audited) >= auditEvery {
		if err := b.audit(ctx, v); err != nil {
			return err
		}
	}
	b.head.Advance(v)
	return nil
}

// audit compares the number of objects at v, the head, with that of etcd. It finds what a watch has lost without a word, as in
// etcd-io/etcd#17529, #18089 and #20655; an event that was lost for an object that is still there is found by the next one.
func (b *backend) audit(ctx context.Context, v listwatch.Version) error {
	got, err := b.db.get(ctx, tryTime, b.location.dir, clientv3.WithRange(b.location.end()), clientv3.WithRev(int64(v)), clientv3.WithCountOnly())
	if err != nil {
		return nil //nolint:nilerr // compacted meanwhile, or out of reach: the next time will do
	}
	b.audited = time.Now()
	if have := int64(b.Stats().Objects + len(b.hidden)); have != got.Count {
		return gapf("etcd has %d keys at revision %d, and its events told of %d", got.Count, v, have)
	}
	return nil
}
