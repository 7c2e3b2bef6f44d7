package bolt

import (
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// A recordCount summarizes the records of a collection. It is stored in the file because a
// damaged page can hide records: each record has its own checksum, but bbolt does not
// detect a missing record.
type recordCount struct {
	count uint64
	sum   uint64 // the sum of the versions, modulo 2^64
}

const recordCountBytes = 16

func (c *recordCount) add(versions ...listwatch.Version) {
	for _, v := range versions {
		c.count++
		c.sum += uint64(v)
	}
}

func (c *recordCount) remove(versions ...listwatch.Version) {
	for _, v := range versions {
		c.count--
		c.sum -= uint64(v)
	}
}

func readCount(tx *bbolt.Tx, collection string) (c recordCount, err error) {
	stored := tx.Bucket(headerBucket).Get(countKey(collection))
	if len(stored) != recordCountBytes {
		return c, corruptf("the record count of %s has %d bytes, want %d", collection, len(stored), recordCountBytes)
	}
	return recordCount{binary.BigEndian.Uint64(stored), binary.BigEndian.Uint64(stored[8:])}, nil
}

func (c recordCount) write(tx *bbolt.Tx, collection string) error {
	stored := binary.BigEndian.AppendUint64(make([]byte, 0, recordCountBytes), c.count)
	return tx.Bucket(headerBucket).Put(countKey(collection), binary.BigEndian.AppendUint64(stored, c.sum))
}

// updateCount passes the stored record count of a collection to change and stores the changed
// count.
func updateCount(tx *bbolt.Tx, collection string, change func(*recordCount)) error {
	c, err := readCount(tx, collection)
	if err != nil {
		return damagedError{err}
	}
	change(&c)
	return c.write(tx, collection)
}

// deleteRecords deletes records of a collection and updates its record count.
func deleteRecords(tx *bbolt.Tx, collection string, versions []listwatch.Version) error {
	b := tx.Bucket(bucketOf(collection))
	for _, v := range versions {
		key := keyOf(v)
		if err := b.Delete(key[:]); err != nil {
			return err
		}
	}
	return updateCount(tx, collection, func(c *recordCount) { c.remove(versions...) })
}
