package etcd

import (
	"bytes"
	"context"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Commit writes c in one transaction on the revision that the key was modified at.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if b.db.options.ReadOnly {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed", Message: "the store is read-only"}
	}
	if c.Old == nil && c.New == nil {
		return nil, &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	w := write{path: b.location.path(c.Key)}
	if c.Old != nil {
		w.from = int64(c.Old.Version)
	}
	var value []byte
	if c.New != nil {
		var err error
		value = encode(c.New)
		w.value = value
		if t := b.db.options.Transformer; t != nil {
			if w.value, err = t.ToStorage(Location{b.name, c.Key}, value); err != nil {
				return nil, &listwatch.Error{Op: "etcd: key " + w.path, Err: err}
			}
		}
	}
	revision, err := b.write(ctx, w)
	if err != nil {
		return nil, err
	}
	b.await(ctx, listwatch.Version(revision))
	if c.New == nil {
		return c.Old.At(listwatch.Version(revision)), nil
	}
	// Decoded from what etcd has, so that the writer sees the same bytes as every watcher of every server.
	return decode(b.resource, c.Key, value, listwatch.Version(revision))
}

// ownWrite is how long a writer waits for its write to come back by the watch.
const ownWrite = 100 * time.Millisecond

// await waits for the log to have v, for a short time: then whoever heard of a write finds it at this server, whatever way is asked. Where etcd's
// watch is late the write is acknowledged all the same; reads that must be fresh find out themselves.
func (b *backend) await(ctx context.Context, v listwatch.Version) {
	if b.head.Version() >= v {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	_ = b.head.Wait(ctx, v) // the write is done, whether it was seen or not
}

// A write is a change of one key.
type write struct {
	path  string
	from  int64  // the revision that the key must have been modified at; zero: it must not be there
	value []byte // nil: delete
}

// write does w and returns its revision. Where etcd does not say whether it was done, it is sent again: it can't be done twice, and who finds it done
// can tell.
func (b *backend) write(ctx context.Context, w write) (revision int64, err error) {
	then := clientv3.OpDelete(w.path)
	if w.value != nil {
		then = clientv3.OpPut(w.path, string(w.value))
	}
	unclear := false
	for late := time.Now().Add(b.db.options.Timeout); !unclear || time.Now().Before(late); {
		if b.db.life.Err() != nil {
			break
		}
		limited, cancel := context.WithTimeout(ctx, tryTime)
		floor := b.db.seen.floor()
		var got *clientv3.TxnResponse
		got, err = b.db.client.Txn(limited).
			If(clientv3.Compare(clientv3.ModRevision(w.path), "=", w.from)).
			Then(then).
			Else(clientv3.OpGet(w.path)).
			Commit()
		cancel()
		switch {
		case err == nil && got.Succeeded:
			return got.Header.Revision, b.db.check(got.Header, floor)
		case err == nil:
			return w.lost(got, unclear)
		case ctx.Err() != nil || !ambiguous(err):
			return 0, failed(ctx, "etcd: write "+w.path, err)
		}
		unclear = true
	}
	if !unclear {
		return 0, errClosed
	}
	e := listwatch.AsError(failed(ctx, "etcd: write "+w.path, err))
	e.Message = errUnknownOutcome.Error()
	return 0, e
}

// lost says what it means that the key was not as w wants it. unclear: w may have been done by an earlier try.
func (w *write) lost(got *clientv3.TxnResponse, unclear bool) (int64, error) {
	now := got.Responses[0].GetResponseRange().Kvs
	switch {
	case !unclear:
	case len(now) == 1 && w.value != nil && bytes.Equal(now[0].Value, w.value):
		return now[0].ModRevision, nil // nobody else writes the same uid and the same content from the same revision
	default:
		return 0, &listwatch.Error{Code: listwatch.Unavailable, Op: "etcd: write " + w.path, Err: errUnknownOutcome}
	}
	return 0, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
}
