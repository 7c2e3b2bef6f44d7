package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// The deadlines of objects with a TTL are in memory only, so a renewal writes nothing. A clean stop
// saves the time that is left of each TTL, and the next start removes it from the file before it
// accepts a renewal. Otherwise a start after a crash would find the times of an earlier stop, and
// an object that was renewed since then would end too early.

// errRenewed is the error of a delete whose object is no longer due. No client receives it.
var errRenewed = &listwatch.Error{Code: listwatch.Conflict, Message: "the object was renewed"}

// ttl returns the TTL of the written object, or zero.
func (w *pendingWrite) ttl() time.Duration {
	if w.change.New == nil {
		return 0
	}
	return w.change.New.TTL
}

// Renew implements [store.Renewer]. It does not wait for a transaction in progress, unless that
// deletes o at the end of its TTL.
func (b *backend) Renew(ctx context.Context, o *listwatch.Object) error {
	return b.lifetimes.Renew(ctx, o.Key, func() error {
		return store.Change{Key: o.Key, Old: o}.Check(b.Log.Get(o.Key))
	})
}

// expire deletes the objects with the given keys, unless they are renewed or written meanwhile. It
// waits for the deletes, so that they do not pile up while the disk does not respond.
func (b *backend) expire(due []listwatch.Key) {
	var requests []*request
	for _, key := range due {
		old := b.Log.Get(key)
		r := &request{
			backend: b, change: store.Change{Key: key, Old: old}, expires: true, done: make(chan struct{}),
		}
		if old != nil && b.db.queue.add(r) {
			requests = append(requests, r)
		}
	}
	for _, r := range requests {
		<-r.done
		if r.err != nil {
			b.lifetimes.Release(r.change.Key)
			continue
		}
		b.expired.Add(1)
		if t := b.db.options.Trace; t != nil && t.Expired != nil {
			t.Expired(b.name, r.object)
		}
	}
}

// lifetimes hold the time that is left of TTLs, by the version of the object.
type lifetimes map[listwatch.Version]time.Duration

// restoreLifetimes starts the TTLs of objects. An object that is not in left has its whole TTL.
func (b *backend) restoreLifetimes(s store.CollectionSpec, objects []*listwatch.Object, left lifetimes) {
	if s.TTL == nil {
		return
	}
	for _, o := range objects {
		ttl := s.ReadTTL(o.Data)
		rest, isSaved := left[o.Version]
		if !isSaved {
			rest = ttl
		}
		if ttl > 0 {
			b.lifetimes.Restore(o.Key, ttl, min(rest, ttl))
		}
	}
}

// left returns the time that is left of each TTL.
func (b *backend) left() lifetimes {
	left := make(lifetimes)
	if b.lifetimes.Len() > 0 {
		for _, o := range b.Log.Objects() {
			if l := b.lifetimes.Left(o.Key); l > 0 {
				left[o.Version] = l
			}
		}
	}
	return left
}

// dropLifetimes removes all saved lifetimes from the header. A copy of the file must not use them,
// because objects may have been renewed after it was made.
func dropLifetimes(header *bbolt.Bucket) error {
	prefix := lifetimesKey("")
	c := header.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Seek(prefix) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// encode returns l as it is stored, sorted by version:
//
//	version    uvarint: the difference to the previous version
//	left       uvarint: seconds, rounded up
//	...
//	checksum   4 bytes, big endian: CRC-32C as in a record of version 0
func (l lifetimes) encode() []byte {
	var dst []byte
	var last listwatch.Version
	for _, v := range slices.Sorted(maps.Keys(l)) {
		dst = binary.AppendUvarint(dst, uint64(v-last))
		dst = binary.AppendUvarint(dst, uint64((l[v]+time.Second-1)/time.Second))
		last = v
	}
	return binary.BigEndian.AppendUint32(dst, checksum(0, dst))
}

// parseLifetimes is the inverse of encode.
func parseLifetimes(src []byte) (lifetimes, error) {
	end := len(src) - checksumBytes
	if end < 0 || binary.BigEndian.Uint32(src[end:]) != checksum(0, src[:end]) {
		return nil, corruptf("the lifetimes do not match their checksum")
	}
	l, v := make(lifetimes), listwatch.Version(0)
	for p := (parser{rest: src[:end]}); len(p.rest) > 0 && !p.failed; {
		v += listwatch.Version(p.uvarint())
		l[v] = time.Duration(p.uvarint()) * time.Second
	}
	return l, nil
}
