package store

import (
	"bytes"
	"context"
	"slices"

	"github.com/listwatch/listwatch"
)

// DryRun returns a view of c that applies all rules to writes but does not write. A write
// returns the object that a write to c would return, except for its version: an update keeps the
// version of the existing object, and a created object has none. Reads return the content of c.
func (c *Collection) DryRun() *Collection {
	return &Collection{spec: c.spec, backend: c.backend, dryRun: true, quota: c.quota}
}

// WithDryRun returns c, or c.DryRun() if stages has the value "All". The argument stages holds the
// values of the parameter dryRun of the Kubernetes API, where "All" is the only stage. For any
// other value, even an empty one, WithDryRun returns an error of code Invalid, because a client
// that sets the parameter does not want a normal write.
func (c *Collection) WithDryRun(stages []string) (*Collection, error) {
	for _, stage := range stages {
		switch stage {
		case "All":
			c = c.DryRun()
		default:
			return nil, badRequest("dryRun %q is not supported; only All is; nothing was written", stage)
		}
	}
	return c, nil
}

// commit checks the quotas and passes change to the backend, unless c is a dry run.
func (c *Collection) commit(ctx context.Context, change Change) (*listwatch.Object, error) {
	release, err := c.reserve(change)
	if err != nil {
		return nil, err
	}
	defer release()
	if !c.dryRun {
		return c.backend.Commit(ctx, change)
	}
	old, err := c.backend.Get(ctx, change.Key)
	switch {
	case err != nil:
		return nil, err
	case (old == nil) != (change.Old == nil) || old != nil && old.Version != change.Old.Version:
		return nil, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	case change.New == nil:
		return change.Old, nil
	case change.Old == nil:
		return unversioned(change.New), nil
	}
	return change.New.Seal(change.Old.Version), nil
}

// unversioned returns d as an object without a resourceVersion.
func unversioned(d *Draft) *listwatch.Object {
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
