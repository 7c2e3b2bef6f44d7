package etcd

import (
	"bytes"
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Commit implements [store.Backend]. It writes c in one transaction, on the condition that
// the key was last modified at the version of c.Old.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if b.db.options.ReadOnly {
		return nil, errReadOnly()
	}
	if c.Old == nil && c.New == nil {
		return nil, &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	w := keyWrite{path: b.keys.path(c.Key), dropsLease: b.spec.TTL != nil}
	if c.Old != nil {
		w.modRevision = int64(c.Old.Version)
	}
	plain, err := b.prepare(ctx, c, &w)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	revision, err := b.write(ctx, w)
	if err == nil {
		b.awaitOwnWrite(ctx, listwatch.Version(revision))
	}
	b.db.options.Trace.Committed(b.name, time.Since(start), err)
	isCollision := c.Old == nil && errors.Is(err, listwatch.Conflict)
	if w.lease != 0 && (isCollision || err == nil && c.New == nil) {
		b.db.revoke(ctx, w.lease)
	}
	if err != nil {
		return nil, err
	}
	if c.New == nil {
		return c.Old.At(listwatch.Version(revision)), nil
	}
	// Decode the JSON that was encoded for etcd, so that the writer gets the same bytes as the
	// watchers of all servers.
	return decode(b.spec, c.Key, plain, listwatch.Version(revision))
}

// prepare sets the value and the lease of w, and returns the JSON of the value. It is nil for a
// delete.
func (b *backend) prepare(ctx context.Context, c store.Change, w *keyWrite) (plain []byte, err error) {
	if c.New == nil {
		if ttl := b.spec.ReadTTL(c.Old.Data); ttl > 0 {
			w.lease = leaseID(w.path, uidOf(c.Old.Data), leaseSeconds(ttl))
		}
		return nil, nil
	}
	plain = c.New.Unversioned().Data
	w.value = plain
	if t := b.db.options.Transformer; t != nil {
		at := store.Location{Collection: b.name, Key: c.Key}
		if w.value, err = t.ToStorage(at, plain); err != nil {
			return nil, &listwatch.Error{Op: "etcd: key " + w.path, Message: "the Transformer failed", Err: err}
		}
	}
	if c.New.TTL > 0 {
		if err := b.checkAbsent(ctx, c); err != nil {
			return nil, err
		}
		if w.lease, err = b.holdLease(ctx, w.path, uidOf(plain), c.New.TTL); err != nil {
			return nil, clientError(ctx, "etcd: lease for "+w.path, err)
		}
	}
	return plain, nil
}

func uidOf(data []byte) string {
	return store.CollectionSpec{Fields: []string{"metadata.uid"}}.ReadFields(data)["metadata.uid"]
}

// checkAbsent returns an error if c creates an object that exists. The transaction would find that,
// too, but only after a lease was granted, which would then have to be revoked.
func (b *backend) checkAbsent(ctx context.Context, c store.Change) error {
	if c.Old != nil || b.Log.Get(c.Key) == nil {
		return nil
	}
	o, err := b.Get(ctx, c.Key)
	if err == nil && o != nil {
		err = errChanged()
	}
	return err
}

// ownWriteTimeout is the time that a writer waits for its own event.
const ownWriteTimeout = 100 * time.Millisecond

// awaitOwnWrite waits briefly until the log has reached v, so that later responses of this
// server include the write. If the watch of etcd is late, the write is acknowledged
// nevertheless: a read of the newest state waits until the log includes it.
func (b *backend) awaitOwnWrite(ctx context.Context, v listwatch.Version) {
	if b.applied.Version() >= v {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ownWriteTimeout)
	defer cancel()
	_ = b.applied.Wait(ctx, v)
}

// A keyWrite is a write of one key.
type keyWrite struct {
	path        string
	modRevision int64  // the revision that last modified the key; 0 if the key must not exist
	value       []byte // nil for a delete
	lease       int64  // the lease of the new object, or of the deleted one; 0 if there is none
	dropsLease  bool   // an update without a lease removes the old lease of the key
}

// op returns the operation that performs w.
func (w *keyWrite) op() clientv3.Op {
	switch {
	case w.value == nil:
		return clientv3.OpDelete(w.path)
	case w.lease != 0:
		return clientv3.OpPut(w.path, string(w.value), clientv3.WithLease(clientv3.LeaseID(w.lease)))
	case w.modRevision != 0 && !w.dropsLease:
		// Another program may have attached a lease to the key. A put without this option would
		// detach it, and the object would never expire.
		return clientv3.OpPut(w.path, string(w.value), clientv3.WithIgnoreLease())
	}
	return clientv3.OpPut(w.path, string(w.value))
}

// write performs w and returns its revision. If etcd does not report the outcome, write
// sends w again. The condition on the revision ensures that w happens only once, and the
// stored value shows whether an earlier try succeeded.
//
// The write that fills etcd is special: etcd may apply it and report ErrNoSpace, and refuses
// it when it is sent again. After this error write only asks whether the condition still holds.
func (b *backend) write(ctx context.Context, w keyWrite) (revision int64, err error) {
	then := []clientv3.Op{w.op()}
	op := "etcd: write " + w.path
	var noSpace error
	uncertain := false
	for deadline := time.Now().Add(b.db.options.Timeout); !uncertain || time.Now().Before(deadline); {
		if b.db.lifetime.Err() != nil {
			break
		}
		tryCtx, cancel := context.WithTimeout(ctx, tryTimeout)
		minRevision := b.db.cluster.minRevision()
		var got *clientv3.TxnResponse
		got, err = b.db.client.Txn(tryCtx).
			If(clientv3.Compare(clientv3.ModRevision(w.path), "=", w.modRevision)).
			Then(then...).
			Else(clientv3.OpGet(w.path)).
			Commit()
		cancel()
		switch {
		case err == nil && got.Succeeded && noSpace != nil:
			return 0, clientError(ctx, op, noSpace)
		case err == nil && got.Succeeded:
			return got.Header.Revision, b.db.checkHeader(got.Header, minRevision)
		case err == nil:
			return w.resolveMismatch(got, uncertain)
		case is(err, rpctypes.ErrLeaseNotFound) && w.modRevision != 0:
			return 0, errChanged() // the object has just ended
		case is(err, rpctypes.ErrNoSpace):
			noSpace, then = err, nil
		case ctx.Err() != nil || !isAmbiguous(err):
			return 0, clientError(ctx, op, err)
		}
		uncertain = true
	}
	if !uncertain {
		return 0, errClosed
	}
	e := listwatch.AsError(clientError(ctx, op, err))
	e.Message = unknownOutcome
	return 0, e
}

// resolveMismatch returns the result of w if the key did not have the expected revision. If
// uncertain is true, an earlier try may have performed w.
func (w *keyWrite) resolveMismatch(got *clientv3.TxnResponse, uncertain bool) (int64, error) {
	if !uncertain {
		return 0, errChanged()
	}
	current := got.Responses[0].GetResponseRange().Kvs
	if len(current) == 1 && w.value != nil && bytes.Equal(current[0].Value, w.value) {
		// The earlier try has written w: no other writer writes the same uid and content
		// over the same revision.
		return current[0].ModRevision, nil
	}
	return 0, &listwatch.Error{
		Code: listwatch.Unavailable, Op: "etcd: write " + w.path, Message: unknownOutcome,
	}
}

// renewLease renews the lease of o. If the collection has got a longer TTL since the last write of
// o, renewLease writes o again with another lease. The error then has code Conflict, because o is
// no longer the newest object. A shorter TTL counts from the next change of o: if two servers have
// different TTLs, which happens in each rolling update of the TTL, every second renewal would
// otherwise be a write.
func (b *backend) renewLease(ctx context.Context, o *listwatch.Object, lease int64) error {
	granted, err := b.db.keepAlive(ctx, lease)
	ttl := b.spec.ReadTTL(o.Data)
	switch {
	case err != nil:
		return err
	case granted == 0:
		return errChanged()
	case ttl <= 0 || granted >= leaseSeconds(ttl):
		return nil
	}
	draft, err := b.spec.Restore(o.Key, o.Data)
	if err != nil {
		return err
	}
	draft.TTL = ttl
	if _, err = b.Commit(ctx, store.Change{Key: o.Key, Old: o, New: draft}); err == nil {
		err = errChanged()
	}
	return err
}

// leaseOf returns the lease of the key at path, or 0 if it has none. The error has code Conflict if
// o is not the newest object.
func (b *backend) leaseOf(ctx context.Context, path string, o *listwatch.Object) (int64, error) {
	if lease, isKnown := b.leases.of(o); isKnown {
		return lease, nil
	}
	// The log lags behind, or the object has no lease. The read must include the value, because
	// etcd 3.7 returns no lease if only the key is read.
	got, err := b.db.get(ctx, b.db.options.Timeout, path)
	if err != nil {
		return 0, err
	}
	if len(got.Kvs) == 0 || got.Kvs[0].ModRevision != int64(o.Version) {
		return 0, errChanged()
	}
	return got.Kvs[0].Lease, nil
}

// holdLease renews or grants the lease for an object with the given TTL, and returns its ID.
func (b *backend) holdLease(ctx context.Context, path, uid string, ttl time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.db.options.Timeout)
	defer cancel()
	seconds := leaseSeconds(ttl)
	id := leaseID(path, uid, seconds)
	for retry := (backoff{}); ; retry.wait(ctx) {
		granted, err := b.db.keepAlive(ctx, id)
		if err != nil || granted != 0 {
			return id, err
		}
		err = b.db.repeat(ctx, func(ctx context.Context) error {
			got, err := b.db.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: seconds})
			if err != nil {
				return err
			}
			return b.db.checkHeader(got.Header, 0)
		})
		if !is(err, rpctypes.ErrLeaseExist) {
			return id, err
		}
		// Another try has granted the lease, or it was ending a moment ago.
	}
}
