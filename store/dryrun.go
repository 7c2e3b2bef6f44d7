package store

import (
	"context"

	"github.com/listwatch/listwatch"
)

// DryRun returns a view of c whose writes obey all rules and leave nothing behind. They return what those of c would, but under the
// version that the object has; under an empty one where it is new. What is read is what c holds.
func (c *Collection) DryRun() *Collection {
	return &Collection{resource: c.resource, backend: c.backend, dry: true}
}

// commit hands ch to the backend, unless c is dry.
func (c *Collection) commit(ctx context.Context, ch Change) (*listwatch.Object, error) {
	if !c.dry {
		return c.backend.Commit(ctx, ch)
	}
	now, err := c.backend.Get(ctx, ch.Key)
	switch {
	case err != nil:
		return nil, err
	case (now == nil) != (ch.Old == nil) || now != nil && now.Version != ch.Old.Version:
		return nil, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	case ch.New == nil:
		return ch.Old, nil
	case ch.Old == nil:
		return unversioned(ch.New), nil
	}
	return ch.New.Seal(ch.Old.Version), nil
}

// unversioned returns an object that never had a version: clients read an empty resourceVersion like none.
func unversioned(d *Draft) *listwatch.Object {
	data := make([]byte, 0, len(d.Before)+len(`""`)+len(d.After))
	data = append(append(append(data, d.Before...), `""`...), d.After...)
	return &listwatch.Object{Key: d.Key, Labels: d.Labels, Fields: d.Fields, Data: data}
}
