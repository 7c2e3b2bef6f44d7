// Package store gives a collection its rules: names, metadata, optimistic concurrency and updates that are retried. The rules are
// written once, in [Collection], over a [Backend] of four methods; memory, bolt and etcd are backends.
package store

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
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
	New *Draft
}

// A Draft is an object that is complete except for its version. A store prepares it before the commit, so that under the store's lock
// only one copy is left to do.
type Draft struct {
	// Key, Labels and Fields are the attributes of the object.
	Key    listwatch.Key
	Labels map[string]string
	Fields map[string]string
	// Before and After are the object's compact JSON before and after the value of metadata.resourceVersion, without its quotes.
	Before, After []byte
}

// Seal returns the object at version v. It may be called more than once.
func (d *Draft) Seal(v listwatch.Version) *listwatch.Object {
	data := rawjson.Splice(d.Before, v.String(), d.After)
	return &listwatch.Object{Key: d.Key, Version: v, Labels: d.Labels, Fields: d.Fields, Data: data}
}
