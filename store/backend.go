package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Backend keeps the objects of one collection. One rule makes concurrent writers safe: Commit
// fails unless the object still has the version that the change was made from. A Backend must be
// safe for concurrent use.
//
// A Backend with a method Stats() listwatch.Stats can have quotas. A Backend that wraps another
// one, for example to validate the changes, has a method Unwrap() listwatch.Source, with which the
// collection finds the epoch and the sizes.
//
// A Backend whose servers may show the same state of an object at different versions has a method
// UnchangedSince(o *listwatch.Object, v listwatch.Version) bool. It reports whether o, which is the
// newest object, already was the newest at v. A writer that has read version v of another server
// then has no conflict.
//
// A Backend that changes the objects that it stores, because it converts them to another version,
// has a method Preview(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error). It
// returns the object, which a dry run would write, as it could be read after the write.
//
// A Backend that is a [Renewer] can have objects that expire.
type Backend interface {
	listwatch.Source
	// Get returns the newest object at key, or nil if there is none.
	Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error)
	// Commit writes c under a new version and returns the object after the write. For a
	// delete, it returns the last state, at the version of the delete. If the object at
	// c.Key no longer has the version of c.Old, Commit writes nothing and returns the error
	// of c.Check. If the error contains a [listwatch.Cause], the write is refused in the same way
	// as by [CollectionSpec.Admit].
	Commit(ctx context.Context, c Change) (*listwatch.Object, error)
}

// A Change is one write: a create if Old is nil, a delete if New is nil, otherwise an update.
type Change struct {
	Key listwatch.Key
	// Old is the object that the change was made from. If nil, no object may exist at Key.
	Old *listwatch.Object
	// New is the object to write. If nil, the object is deleted.
	New *Draft
}

// Check returns nil if c can be committed. current is the newest object at c.Key, or nil if there
// is none. Otherwise the error has code Conflict or, for a delete of an absent object, NotFound.
func (c Change) Check(current *listwatch.Object) error {
	switch {
	case (current == nil) != (c.Old == nil), current != nil && current.Version != c.Old.Version:
		return &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	case current == nil && c.New == nil:
		return &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	return nil
}

// A Draft is an object that is complete except for its version. It is prepared before the
// commit, so that a backend only needs to copy bytes while it holds its lock.
type Draft struct {
	// Key, Labels and Fields are the attributes of the object.
	Key    listwatch.Key
	Labels map[string]string
	Fields map[string]string
	// Before and After are the object's compact JSON before and after the value of
	// metadata.resourceVersion, without the quotes of the value.
	Before, After []byte
	// TTL is the time to live of the object, or zero if it does not expire. A [Renewer] deletes the
	// object when this time has passed since the last write or renewal.
	TTL time.Duration
}

// A Renewer is a Backend that deletes the objects whose [Draft] has a TTL. Each of them is deleted
// once, by a delete like any other, at a version of its own. The time in which the Backend could
// not receive renewals does not count. A Renewer may delete an object later, but never earlier.
type Renewer interface {
	Backend
	// Renew starts the TTL of o again, without a write. Once it has returned nil, o lives for its
	// TTL from the call of Renew on. If o is not the newest object at its key, the error has code
	// Conflict. The same holds if Renew had to write o again, because the TTL has become longer
	// since the last write. If o does not expire, Renew has no effect.
	Renew(ctx context.Context, o *listwatch.Object) error
}

// Seal returns the object at version v. It may be called more than once.
func (d *Draft) Seal(v listwatch.Version) *listwatch.Object {
	data := rawjson.Splice(d.Before, v.String(), d.After)
	return &listwatch.Object{Key: d.Key, Version: v, Labels: d.Labels, Fields: d.Fields, Data: data}
}

// Unversioned returns d as an object without a resourceVersion. A backend whose versions are not
// known before the write stores the JSON of this object, and reads it with
// [CollectionSpec.Restore].
func (d *Draft) Unversioned() *listwatch.Object {
	before, after := d.Before[:len(d.Before)-len(":")], d.After
	before = before[:bytes.LastIndexByte(before[:len(before)-1], '"')] // drops the key
	if before[len(before)-1] == ',' {
		before = before[:len(before)-1]
	} else {
		after = bytes.TrimPrefix(after, []byte(","))
	}
	data := slices.Concat(before, after)
	return &listwatch.Object{Key: d.Key, Labels: d.Labels, Fields: d.Fields, Data: data}
}

// Restore returns the draft of an object that was stored as JSON. The resourceVersion follows the
// uid, as in Kubernetes, or is the last member of the metadata if there is no uid. The draft has
// the given key even if the JSON contains another name. Data that is not an object of this kind is
// an error. If s has no Kind, any kind is accepted.
func (s CollectionSpec) Restore(key listwatch.Key, data []byte) (*Draft, error) {
	o, err := listwatch.ParseObject(data)
	if err != nil {
		return nil, err
	}
	if kind := rawjson.Lookup(o.Data, "kind"); len(kind) > 0 && s.Kind != "" {
		if text, err := rawjson.String(kind); err != nil || text != s.Kind {
			return nil, fmt.Errorf("its kind is %s, want %q", kind, s.Kind)
		}
	}
	d := &Draft{Key: key, Labels: o.Labels, Fields: s.ReadFields(o.Data)}
	d.Before, d.After, err = splitVersion(o.Data)
	return d, err
}

// splitVersion returns the parts of compact JSON that come before and after the value of
// metadata.resourceVersion.
func splitVersion(data []byte) (before, after []byte, err error) {
	metadata, err := rawjson.Find(data, "metadata")
	if err != nil {
		return nil, nil, err
	}
	var uid, version rawjson.Span
	members := 0
	err = rawjson.Members(metadata.Of(data), func(name string, value rawjson.Span) error {
		members++
		switch name {
		case "uid":
			uid = value.Shift(metadata.Start)
		case "resourceVersion":
			version = value.Shift(metadata.Start)
		}
		return nil
	})
	const member = `"resourceVersion":`
	switch {
	case err != nil:
		return nil, nil, err
	case !version.Empty():
		return data[:version.Start:version.Start], data[version.End:], nil
	case !uid.Empty():
		return append(data[:uid.End:uid.End], ","+member...), data[uid.End:], nil
	case members == 0:
		return append(data[:metadata.End-1:metadata.End-1], member...), data[metadata.End-1:], nil
	}
	return append(data[:metadata.End-1:metadata.End-1], ","+member...), data[metadata.End-1:], nil
}
