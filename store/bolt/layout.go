package bolt

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// The file is a bbolt database with these buckets:
//
//	listwatch          the header; below, "name" is the qualified name of a collection
//	  format             the number of this format, in decimal
//	  epoch              the random text that identifies the file
//	  last               version: the newest version assigned to a write
//	  probe              a known text as the Transformer stores it
//	  resource/name      JSON: the declaration of the collection
//	  floor/name         version: records up to it are state, later ones are history
//	  tally/name         the number of records, and the sum of their versions modulo 2^64;
//	                     8 bytes each, big endian
//	collection/name    version → record
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
)

func bucketOf(collection string) []byte       { return []byte("collection/" + collection) }
func floorKey(collection string) []byte       { return []byte("floor/" + collection) }
func countKey(collection string) []byte       { return []byte("tally/" + collection) }
func declarationKey(collection string) []byte { return []byte("resource/" + collection) }

// Open uses knownText to detect that a file was created with another Transformer.
const knownText = `{"listwatch":"probe"}`

// A header holds the entries of the header bucket that concern the whole database.
type header struct {
	epoch string
	last  listwatch.Version
	// storedText is knownText as the Transformer stored it. It is valid during the transaction.
	storedText []byte
}

// readHeader reads the header. If the file is not a database of this package, the error
// says what the file is instead.
func readHeader(tx *bbolt.Tx) (h header, err error) {
	b := tx.Bucket(headerBucket)
	if b == nil {
		return h, &listwatch.Error{Code: listwatch.Invalid, Message: "the file is a database of another program: it has no bucket " + string(headerBucket)}
	}
	format, err := strconv.Atoi(string(b.Get(formatKey)))
	if err != nil || format < 1 {
		return h, corruptf("its format is %q, want a number", b.Get(formatKey))
	}
	if format > formatNumber {
		return h, &listwatch.Error{
			Code:    listwatch.Unsupported,
			Message: fmt.Sprintf("the file has format %d and was written by a newer version; this one reads format %d", format, formatNumber),
		}
	}
	h.epoch, h.storedText = string(b.Get(epochKey)), b.Get(knownTextKey)
	if h.epoch == "" {
		return h, corruptf("it has no epoch")
	}
	if h.last, err = versionOf(b.Get(lastKey)); err != nil {
		return h, corruptf("last: %w", err)
	}
	return h, nil
}

// initialize writes the header of an empty database.
func initialize(f *file, o Options) error {
	stored, err := o.Transformer.ToStorage(Location{}, []byte(knownText))
	if err != nil {
		return fmt.Errorf("transformer: %w", err)
	}
	last := keyOf(o.StartVersion)
	values := []struct{ key, value []byte }{
		{formatKey, strconv.AppendInt(nil, formatNumber, 10)}, {epochKey, []byte(rand.Text())}, {lastKey, last[:]}, {knownTextKey, stored},
	}
	return catchPanic(func() error {
		return f.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(headerBucket)
			if err != nil {
				return err
			}
			for _, v := range values {
				if err := b.Put(v.key, v.value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// A declaration is the part of a CollectionSpec that is stored in the file.
type declaration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

func declarationOf(s store.CollectionSpec) declaration {
	return declaration{s.APIVersion, s.Kind, s.Namespaced}
}

func (d declaration) String() string {
	scope := "without namespaces"
	if d.Namespaced {
		scope = "with namespaces"
	}
	return fmt.Sprintf("%s of %s %s", d.Kind, d.APIVersion, scope)
}

// isDeclared reports whether the file has the collection that s declares. If the file has a
// different declaration of it, the result is an error. But if the stored collection is empty,
// the result is false, so that declare can replace a mistaken declaration.
func isDeclared(tx *bbolt.Tx, s store.CollectionSpec) (bool, error) {
	name := s.QualifiedName()
	stored := tx.Bucket(headerBucket).Get(declarationKey(name))
	if stored == nil {
		return false, nil
	}
	var have declaration
	if err := json.Unmarshal(stored, &have); err != nil {
		return false, corruptf("the declaration of %s: %w", name, err)
	}
	want := declarationOf(s)
	if have == want {
		return true, nil
	}
	if c, err := readCount(tx, name); err != nil || c == (recordCount{}) {
		return false, err
	}
	return false, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("the file has %s as %v, but it is declared as %v", name, have, want)}
}

// declare adds the collection that s declares, or replaces the declaration of an empty
// collection.
func declare(tx *bbolt.Tx, s store.CollectionSpec, last listwatch.Version) error {
	name := s.QualifiedName()
	b := tx.Bucket(headerBucket)
	text, err := json.Marshal(declarationOf(s))
	if err != nil {
		return err
	}
	if b.Get(declarationKey(name)) == nil {
		_, err = tx.CreateBucket(bucketOf(name))
	}
	switch {
	case errors.Is(err, berrors.ErrBucketExists):
		return corruptf("%s has records, but is not declared", name)
	case err != nil:
		return err
	}
	floor := keyOf(last)
	if err := b.Put(floorKey(name), floor[:]); err != nil {
		return err
	}
	if err := (recordCount{}).write(tx, name); err != nil {
		return err
	}
	return b.Put(declarationKey(name), text)
}
