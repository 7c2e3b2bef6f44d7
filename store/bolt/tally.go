package bolt

import (
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// A tally is what the records of a collection add up to. The file keeps it beside them: every record has a checksum, but nothing in bbolt
// tells that a damaged page hides some.
type tally struct {
	count uint64
	sum   uint64 // of the versions, modulo 2^64
}

const tallyBytes = 16

func (t *tally) add(v listwatch.Version)    { t.count++; t.sum += uint64(v) }
func (t *tally) remove(v listwatch.Version) { t.count--; t.sum -= uint64(v) }

func readTally(tx *bbolt.Tx, collection string) (t tally, err error) {
	kept := tx.Bucket(headerBucket).Get(tallyKey(collection))
	if len(kept) != tallyBytes {
		return t, corruptf("the tally of %s has %d bytes, want %d", collection, len(kept), tallyBytes)
	}
	return tally{binary.BigEndian.Uint64(kept), binary.BigEndian.Uint64(kept[8:])}, nil
}

func (t tally) write(tx *bbolt.Tx, collection string) error {
	kept := binary.BigEndian.AppendUint64(make([]byte, 0, tallyBytes), t.count)
	return tx.Bucket(headerBucket).Put(tallyKey(collection), binary.BigEndian.AppendUint64(kept, t.sum))
}

// recount writes the tally of a collection as change leaves it.
func recount(tx *bbolt.Tx, collection string, change func(*tally)) error {
	t, err := readTally(tx, collection)
	if err != nil {
		return damaged{err}
	}
	change(&t)
	return t.write(tx, collection)
}
