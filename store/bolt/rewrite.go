package bolt

import (
	"bytes"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch/store"
)

// A rewriting is the progress of a [DB.Rewrite]. The next record is the one at key in bucket, or
// the first one after it.
type rewriting struct {
	db          *DB
	bucket, key []byte
	left        int // the bytes that the current transaction may still rewrite
	done        bool
}

// next performs one transaction.
func (r *rewriting) next() error {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	if r.db.file == nil {
		return errClosed()
	}
	if err := r.db.checkFile(); err != nil {
		return err
	}
	if err := catchPanic(func() error { return r.db.update(r.batch) }); err != nil {
		return writeError(r.db.realPath, err)
	}
	return nil
}

// batch rewrites about shrinkBatchBytes of records. After the last one, it rewrites the known text.
func (r *rewriting) batch(tx *bbolt.Tx) error {
	r.left = shrinkBatchBytes
	c := tx.Cursor()
	for name, _ := c.Seek(r.bucket); bytes.HasPrefix(name, bucketOf("")); name, _ = c.Next() {
		if !bytes.Equal(name, r.bucket) {
			r.bucket, r.key = bytes.Clone(name), nil
		}
		if isComplete, err := r.rewriteBucket(tx.Bucket(name)); err != nil || !isComplete {
			return err
		}
	}
	r.done = true
	stored, err := r.db.options.Transformer.ToStorage(store.Location{}, []byte(knownText))
	if err != nil {
		return err
	}
	return tx.Bucket(headerBucket).Put(knownTextKey, stored)
}

// rewriteBucket rewrites the records of b, which is at r.bucket, from r.key on. It reports whether
// it has reached the last one.
func (r *rewriting) rewriteBucket(b *bbolt.Bucket) (isComplete bool, err error) {
	collection := strings.TrimSuffix(strings.TrimPrefix(string(r.bucket), string(bucketOf(""))), departuresOf(""))
	var keys, values [][]byte // put after the loop, because a put would move the cursor
	c := b.Cursor()
	k, v := c.Seek(r.key)
	for ; k != nil && r.left > 0; k, v = c.Next() {
		r.left -= len(v)
		version, err := versionOf(k)
		if err != nil {
			return false, damagedError{err}
		}
		stored, err := parseRecord(v, version)
		if err != nil {
			return false, damagedError{err}
		}
		if stored.deleted {
			continue // it has no data
		}
		at := store.Location{Collection: collection, Key: stored.key, Version: version}
		if stored.data, err = r.db.options.Transformer.FromStorage(at, stored.data); err != nil {
			return false, err
		}
		if stored.data, err = r.db.options.Transformer.ToStorage(at, stored.data); err != nil {
			return false, err
		}
		keys, values = append(keys, bytes.Clone(k)), append(values, stored.appendTo(nil, version))
	}
	r.key = bytes.Clone(k)
	for i := range keys {
		if err := b.Put(keys[i], values[i]); err != nil {
			return false, err
		}
	}
	return k == nil, nil
}
