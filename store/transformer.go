package store

import "github.com/listwatch/listwatch"

// A Transformer changes the JSON of objects on its way to a database and back, for example to
// encrypt it; package aesgcm has one that does. Keys, versions and times are stored unchanged.
// A Transformer must be safe for concurrent use, and must not modify or keep its arguments.
type Transformer interface {
	// ToStorage returns the form in which the bytes in plain are stored.
	ToStorage(at Location, plain []byte) (stored []byte, err error)
	// FromStorage is the inverse of ToStorage.
	FromStorage(at Location, stored []byte) (plain []byte, err error)
}

// A Location is the place of a value in a database. A Transformer that authenticates values can
// bind each value to its Location, so that values cannot be swapped.
type Location struct {
	// Collection is the qualified name of the collection. It is empty for the text with which a
	// database detects that it was written with another Transformer.
	Collection string
	// Key is the key of the object.
	Key listwatch.Key
	// Version is the version of the object. It is zero in etcd, which assigns it later.
	Version listwatch.Version
}
