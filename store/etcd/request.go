package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/listwatch/listwatch"
)

// tryTimeout is the time after which a request is sent again to another member. Reads can
// be repeated, and so can writes, because their transactions cannot succeed twice.
const tryTimeout = 2 * time.Second

// get performs a linearized read. It tries one member after another until a member responds, ctx
// ends, or limit has passed.
func (db *DB) get(ctx context.Context, limit time.Duration, key string,
	o ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if db.lifetime.Err() != nil {
			return nil, errClosed
		}
		tryCtx, cancelTry := context.WithTimeout(ctx, tryTimeout)
		minRevision := db.cluster.minRevision()
		got, err := db.client.Get(tryCtx, key, o...)
		cancelTry()
		switch {
		case err == nil:
			return got, db.checkHeader(got.Header, minRevision)
		case ctx.Err() != nil || codeOf(err) != listwatch.Unavailable:
			return nil, err
		}
	}
}

// readRevision returns the newest revision of etcd. It retries for timeout while etcd is
// unavailable.
func (db *DB) readRevision(ctx context.Context, timeout time.Duration) (revision int64, err error) {
	got, err := db.get(ctx, timeout, db.options.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

// keepAlive renews a lease. It returns the TTL of the lease in seconds, or 0 if there is no such
// lease.
func (db *DB) keepAlive(ctx context.Context, lease int64) (seconds int64, err error) {
	err = db.repeat(ctx, func(ctx context.Context) error {
		stream, err := db.leases.LeaseKeepAlive(ctx, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}) // Recv returns the reason if it fails
		got, err := stream.Recv()
		if err == nil {
			seconds, err = got.TTL, db.checkHeader(got.Header, 0)
		}
		return err
	})
	if is(err, rpctypes.ErrLeaseNotFound) {
		return 0, nil
	}
	return seconds, err
}

// revoke ends a lease that no key has. Otherwise clients that create and delete objects could fill
// etcd with leases. If etcd does not respond, the lease lasts for its TTL, which may be years.
func (db *DB) revoke(ctx context.Context, lease int64) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, _ = db.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease})
}

// repeat makes a request that can be repeated, until a member responds, ctx ends, or
// Options.Timeout has passed.
func (db *DB) repeat(ctx context.Context, request func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.options.Timeout)
	defer cancel()
	for retry := (backoff{}); ; retry.wait(ctx) {
		if db.lifetime.Err() != nil {
			return errClosed
		}
		tryCtx, cancelTry := context.WithTimeout(ctx, tryTimeout)
		err := request(tryCtx)
		cancelTry()
		if err == nil || ctx.Err() != nil || codeOf(err) != listwatch.Unavailable {
			return err
		}
	}
}

// clusterState detects that etcd was replaced by another cluster or restored from a backup.
type clusterState struct {
	mu sync.Mutex
	// Guarded by mu.
	revision int64 // the newest revision in a response to a linearized request
	replaced error // if not nil, the reason why the state in memory is no longer valid
}

// minRevision returns the lowest revision that the response to a linearized request can
// have if the request is sent now.
func (c *clusterState) minRevision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.revision, 1)
}

// checkHeader returns an error if etcd was replaced by another cluster or by a restored backup.
// The state in memory is then no longer valid, and etcd will assign the same versions to other
// states. For a linearized request, minRevision is the result of clusterState.minRevision before
// the request was sent. For other responses it is 0.
func (db *DB) checkHeader(h *pb.ResponseHeader, minRevision int64) error {
	c := &db.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.replaced != nil:
	case h.GetClusterId() != db.clusterID:
		c.replaced = fmt.Errorf("the etcd cluster is %x, but was %x when the server started", h.GetClusterId(),
			db.clusterID)
	case h.GetRevision() < minRevision:
		c.replaced = wentBack(h.GetRevision(), minRevision)
	}
	if c.replaced != nil {
		return restartServer(c.replaced)
	}
	if minRevision != 0 {
		c.revision = max(c.revision, h.GetRevision())
	}
	return nil
}

// revisionWentBack records that etcd now has an older revision than before, and returns the
// error for it.
func (db *DB) revisionWentBack(now, before int64) error {
	db.cluster.mu.Lock()
	defer db.cluster.mu.Unlock()
	if db.cluster.replaced == nil {
		db.cluster.replaced = wentBack(now, before)
	}
	return restartServer(db.cluster.replaced)
}

func wentBack(now, before int64) error {
	return fmt.Errorf("etcd is at revision %d and was at %d: it was restored from a backup", now, before)
}

func restartServer(reason error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "etcd", Message: "restart the server", Err: reason}
}
