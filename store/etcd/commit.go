package etcd

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Commit implements [store.Backend]. It writes c in one transaction, on the condition that
// the key was last modified at the version of c.Old.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if b.db.options.ReadOnly {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
			Message: "the store is read-only",
		}
	}
	if c.Old == nil && c.New == nil {
		return nil, &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	w := keyWrite{path: b.keys.path(c.Key)}
	if c.Old != nil {
		w.modRevision = int64(c.Old.Version)
	}
	var plain []byte
	if c.New != nil {
		var err error
		plain = c.New.Unversioned().Data
		w.value = plain
		if t := b.db.options.Transformer; t != nil {
			at := store.Location{Collection: b.name, Key: c.Key}
			if w.value, err = t.ToStorage(at, plain); err != nil {
				return nil, &listwatch.Error{Op: "etcd: key " + w.path, Message: "the Transformer failed", Err: err}
			}
		}
	}
	start := time.Now()
	revision, err := b.write(ctx, w)
	if err == nil {
		b.awaitOwnWrite(ctx, listwatch.Version(revision))
	}
	b.db.options.Trace.Committed(b.name, time.Since(start), err)
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
}

// write performs w and returns its revision. If etcd does not report the outcome, write
// sends w again. The condition on the revision ensures that w happens only once, and the
// stored value shows whether an earlier try succeeded.
//
// The write that fills etcd is special: etcd may apply it and report ErrNoSpace, and refuses
// it when it is sent again. After this error write only asks whether the condition still holds.
func (b *backend) write(ctx context.Context, w keyWrite) (revision int64, err error) {
	then := []clientv3.Op{clientv3.OpDelete(w.path)}
	switch {
	case w.value != nil && w.modRevision != 0:
		// Another program may have attached a lease to the key. A put without this option would
		// detach it, and the object would never expire.
		then[0] = clientv3.OpPut(w.path, string(w.value), clientv3.WithIgnoreLease())
	case w.value != nil:
		then[0] = clientv3.OpPut(w.path, string(w.value))
	}
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
		return 0, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
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
