// Package store gives a collection its rules: names, metadata, optimistic concurrency and updates that are retried. The rules are
// written once, in [Collection], over a [Backend] of four methods; memory, bolt and etcd are backends.
package store

import (
	"context"

	"github.com/listwatch/listwatch"
)

// A Backend keeps the objects of one collection. It applies no rules but the one that makes writers safe: a change is
// committed only on the version it was made from. It is safe for concurrent use.
type Backend interface {
	listwatch.Source
	// Get returns the newest object at key, or nil where there is none.
	Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error)
	// Commit writes c under a new version and returns the object as the write left it; for a delete, the last state at the
	// version of the delete. Where the object at c.Key is no longer c.Old, nothing is written and the error has code Conflict.
	Commit(ctx context.Context, c Change) (*listwatch.Object, error)
}

// A Change is one write: a create (Old is nil), an update, or a delete (New is nil).
type Change struct {
	Key listwatch.Key
	// Old is the object that the change was made from; nil demands that there is none.
	Old *listwatch.Object
	// New is the object to be; nil deletes.
	New *listwatch.Draft
}
