package bolt

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// The file is a bbolt database with these buckets:
//
//	listwatch          the header; below, "name" is the qualified name of a collection
//	  format             the number of this format, in decimal
//	  epoch              the random text that identifies the file
//	  last               version: the newest version assigned to a write
//	  probe              a known text as the Transformer stores it
//	  backup             only in a backup: the time at which it was made, as in RFC 3339
//	  resource/name      JSON: the declaration of the collection
//	  floor/name         version: records up to it are state, later records are history
//	  tally/name         the number of records, and the sum of their versions modulo 2^64;
//	                     8 bytes each, big endian
//	  lifetimes/name     the time that is left of each TTL; only while the file is closed
//	collection/name    version → record
//
// Every collection has a second one, "name/departures". The records of the second are departures,
// and its floor is the horizon. It is not declared.
//
// Versions are 8 bytes, big endian.
//
// Invariants of a collection: every write after the floor has a record. Every record at or
// before the floor holds an object as it was at the floor.
const formatNumber = 1

var (
	headerBucket = []byte("listwatch")
	formatKey    = []byte("format")
	epochKey     = []byte("epoch")
	lastKey      = []byte("last")
	knownTextKey = []byte("probe")
	backupKey    = []byte("backup")
)

func bucketOf(collection string) []byte       { return []byte("collection/" + collection) }
func floorKey(collection string) []byte       { return []byte("floor/" + collection) }
func countKey(collection string) []byte       { return []byte("tally/" + collection) }
func declarationKey(collection string) []byte { return []byte("resource/" + collection) }
func lifetimesKey(collection string) []byte   { return []byte("lifetimes/" + collection) }

// Open uses knownText to detect that a file was created with another Transformer.
const knownText = `{"listwatch":"probe"}`

// A header holds the entries of the header bucket that concern the whole database.
type header struct {
	epoch string
	last  listwatch.Version
	// storedText is knownText as the Transformer stored it. It is valid during the transaction.
	storedText []byte
	// backedUp is the time at which this copy of a database was made. It is empty unless the file
	// is a backup.
	backedUp string
}

// readHeader reads the header. If the file is not a database of this package, the error
// says what the file is instead.
func readHeader(tx *bbolt.Tx) (h header, err error) {
	b := tx.Bucket(headerBucket)
	if b == nil {
		return h, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: "the file is a database of another program: it has no bucket " + string(headerBucket),
		}
	}
	format, err := strconv.Atoi(string(b.Get(formatKey)))
	if err != nil || format < 1 {
		return h, corruptf("its format is %q, want a number", b.Get(formatKey))
	}
	if format > formatNumber {
		return h, &listwatch.Error{
			Code: listwatch.Unsupported,
			Message: fmt.Sprintf("the file has format %d and was written by a newer version; this one reads format %d",
				format, formatNumber),
		}
	}
	h.epoch, h.storedText, h.backedUp = string(b.Get(epochKey)), b.Get(knownTextKey), string(b.Get(backupKey))
	if h.epoch == "" {
		return h, corruptf("it has no epoch")
	}
	if h.last, err = versionOf(b.Get(lastKey)); err != nil {
		return h, corruptf("last: %w", err)
	}
	return h, nil
}

// keyOf returns the key under which bbolt stores the record of a version. Keys sort like
// versions.
func keyOf(v listwatch.Version) [8]byte {
	var k [8]byte
	binary.BigEndian.PutUint64(k[:], uint64(v))
	return k
}

// versionOf is the inverse of keyOf.
func versionOf(key []byte) (listwatch.Version, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("a version has %d bytes, want 8", len(key))
	}
	return listwatch.Version(binary.BigEndian.Uint64(key)), nil
}
