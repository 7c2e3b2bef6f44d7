package bolt

import "github.com/listwatch/listwatch"

// A Transformer changes the JSON of objects on its way to the file and back, to encrypt it for example; there is no such thing here. Keys,
// versions and times are not changed. Its methods may not modify or keep what they are given. Write is called by one goroutine at a
// time, between a writer and the disk; Read when a collection is declared.
type Transformer interface {
	// Write returns what the file is to keep for plain. An error fails the write with code Unavailable.
	ToStorage(at Location, plain []byte) (kept []byte, err error)
	// Read returns what Write was given. An error fails the opening with code Corrupt.
	FromStorage(at Location, kept []byte) (plain []byte, err error)
}

// A Place is where a value is kept. Whoever authenticates values can bind them to it, so that they can't be exchanged for others.
type Location struct {
	// Collection is the qualified name of the collection. Empty: the value is the file's own, by which it is noticed that another
	// Transformer wrote the file.
	Collection string
	// Key and Version are those of the object.
	Key     listwatch.Key
	Version listwatch.Version
}

// identity is the Transformer of those who want none.
type identity struct{}

func (identity) ToStorage(_ Location, plain []byte) ([]byte, error)  { return plain, nil }
func (identity) FromStorage(_ Location, kept []byte) ([]byte, error) { return kept, nil }
