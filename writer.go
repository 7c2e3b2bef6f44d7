package listwatch

import "context"

// A Store is a Source that can also be written. A store.Collection and a client.Remote are Stores,
// so a program that takes a Store works with a local store and with a URL. Package typed reads and
// writes Go values through a Store.
type Store interface {
	Source
	Writer
	// Get returns the newest object at key. If there is none, the error has code [NotFound].
	Get(ctx context.Context, key Key) (*Object, error)
}

// A Writer writes the objects of a collection. All Writers return the same codes: [Invalid] for
// an object that breaks a rule, [NotFound], [AlreadyExists] and [Conflict]. Errors of the context
// are returned unchanged. A write that fails with [Unavailable] may have been performed
// nevertheless. A Writer is safe for concurrent use.
//
// A wrapper that embeds a Store can override methods of Writer to check or change the objects.
// The wrapped Store then checks only its own rules.
type Writer interface {
	// Create writes a new object, given as JSON, and returns it with the metadata that the server
	// has set. If it has metadata.generateName and no name, its name is generated.
	Create(ctx context.Context, data []byte) (*Object, error)
	// Replace replaces the object at key with the object in data, which must have the same name
	// and namespace. If data has a metadata.resourceVersion or uid, they are preconditions. So an
	// object that was read, changed and sent back never overwrites the change of another writer.
	Replace(ctx context.Context, key Key, data []byte) (*Object, error)
	// Delete deletes the object at key and returns its last state, at the version of the delete. An
	// object with finalizers is only marked, and deleted when its last finalizer is removed. The
	// object is nil if the server does not return it; a Kubernetes API server rarely does.
	Delete(ctx context.Context, key Key, p Preconditions) (*Object, error)
}

// Preconditions must hold for an object before it is written; otherwise the error has code
// [Conflict]. The zero Preconditions always hold.
type Preconditions struct {
	// UID is the required metadata.uid, which distinguishes an object from a later object of the
	// same name. If empty, any uid is accepted.
	UID string
	// Version is the required version. If zero, any version is accepted.
	Version Version
}
