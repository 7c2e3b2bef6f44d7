package etcd

import "github.com/listwatch/listwatch"

// A Transformer changes the JSON of objects on its way to etcd and back, to encrypt it for example; there is no such thing here. Keys and versions
// are not changed. Its methods are called from many goroutines, and may not modify or keep what they are given.
type Transformer interface {
	// Write returns what etcd is to keep for plain. An error fails the write.
	ToStorage(at Location, plain []byte) (kept []byte, err error)
	// Read returns what Write was given. An error makes the key unreadable: see [Options.SkipUnreadable].
	FromStorage(at Location, kept []byte) (plain []byte, err error)
}

// A Place is where a value is kept. Whoever authenticates values can bind them to it, so that they can't be exchanged for others.
type Location struct {
	// Collection is the qualified name of the collection.
	Collection string
	// Key is that of the object.
	Key listwatch.Key
}
