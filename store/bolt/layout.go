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

// The file is a database of bbolt with these buckets:
//
//	listwatch          about the file; below, "name" is the qualified name of a collection
//	  format             the number of this layout, in decimal
//	  epoch              random text, made with the file
//	  last               version: the newest that was given out
//	  probe              a known text as the Transformer wrote it
//	  resource/name      JSON: what the collection was declared as
//	  floor/name         version: records up to it are the state, those after it are the history
//	  tally/name         how many records there are, 8 bytes, big endian, and the sum of their versions modulo 2^64, likewise
//	collection/name    version → record
//
// Versions are 8 bytes, big endian.
//
// Invariants of a collection: the records after floor are all its writes after floor. A record at or before floor is an object whose
// newest write it is, or the object as it was at floor, which a record after floor has replaced.
const formatNumber = 1

var (
	headerBucket = []byte("listwatch")
	formatKey    = []byte("format")
	epochKey     = []byte("epoch")
	lastKey      = []byte("last")
	probeKey     = []byte("probe")
)

func bucketOf(collection string) []byte    { return []byte("collection/" + collection) }
func floorKey(collection string) []byte    { return []byte("floor/" + collection) }
func tallyKey(collection string) []byte    { return []byte("tally/" + collection) }
func resourceKey(collection string) []byte { return []byte("resource/" + collection) }

// probeText is what a Transformer is given and must return when a file is opened.
const probeText = `{"listwatch":"probe"}`

// A header is what a file says of itself.
type header struct {
	epoch string
	last  listwatch.Version
	probe []byte // part of the file
}

// readHeader reads the header, or says what the file is if it is none of ours.
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
	h.epoch, h.probe = string(b.Get(epochKey)), b.Get(probeKey)
	if h.epoch == "" {
		return h, corruptf("it has no epoch")
	}
	if h.last, err = versionOf(b.Get(lastKey)); err != nil {
		return h, corruptf("last: %w", err)
	}
	return h, nil
}

// initialize writes the header of a database that has nothing in it yet.
func initialize(db *file, o Options) error {
	probe, err := o.Transformer.ToStorage(Location{}, []byte(probeText))
	if err != nil {
		return fmt.Errorf("transformer: %w", err)
	}
	return guarded(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(headerBucket)
			if err != nil {
				return err
			}
			last := keyOf(o.StartVersion)
			for _, kv := range [][2][]byte{{formatKey, strconv.AppendInt(nil, formatNumber, 10)}, {epochKey, []byte(rand.Text())}, {lastKey, last[:]}, {probeKey, probe}} {
				if err := b.Put(kv[0], kv[1]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// declared is how a resource is kept, in JSON.
type declared struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

func declarationOf(r store.CollectionSpec) declared {
	return declared{r.APIVersion, r.Kind, r.Namespaced}
}

func (d declared) String() string {
	scope := "without namespaces"
	if d.Namespaced {
		scope = "in namespaces"
	}
	return fmt.Sprintf("%s of %s %s", d.Kind, d.APIVersion, scope)
}

// isDeclared reports whether the file has the collection that r declares. One that it keeps as something else is an error, unless there is
// nothing in it: whoever mistyped it may correct that.
func isDeclared(tx *bbolt.Tx, r store.CollectionSpec) (bool, error) {
	name := r.QualifiedName()
	kept := tx.Bucket(headerBucket).Get(resourceKey(name))
	if kept == nil {
		return false, nil
	}
	var have declared
	if err := json.Unmarshal(kept, &have); err != nil {
		return false, corruptf("the declaration of %s: %w", name, err)
	}
	want := declarationOf(r)
	if have == want {
		return true, nil
	}
	if t, err := readTally(tx, name); err != nil || t == (tally{}) {
		return false, err
	}
	return false, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("the file keeps %s as %v, but it is declared as %v", name, have, want)}
}

// declare adds the collection that r declares, or declares one anew in which there is nothing.
func declare(tx *bbolt.Tx, r store.CollectionSpec, last listwatch.Version) error {
	name := r.QualifiedName()
	b := tx.Bucket(headerBucket)
	text, err := json.Marshal(declarationOf(r))
	if err != nil {
		return err
	}
	if b.Get(resourceKey(name)) == nil {
		_, err = tx.CreateBucket(bucketOf(name))
	}
	switch {
	case errors.Is(err, berrors.ErrBucketExists):
		return corruptf("there are records of %s, but it is not declared", name)
	case err != nil:
		return err
	}
	floor := keyOf(last)
	if err := b.Put(floorKey(name), floor[:]); err != nil {
		return err
	}
	if err := (tally{}).write(tx, name); err != nil {
		return err
	}
	return b.Put(resourceKey(name), text)
}
