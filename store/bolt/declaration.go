package bolt

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

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
	return false, &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: fmt.Sprintf("the file has %s as %v, but it is declared as %v", name, have, want),
	}
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
	if err := declareDepartures(tx, name, last); err != nil {
		return err
	}
	return b.Put(declarationKey(name), text)
}
