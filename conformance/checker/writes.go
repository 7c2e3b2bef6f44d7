package checker

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A Collection writes to a store.Collection and records what was acknowledged. It is safe for concurrent use. Objects must have no
// finalizers, so that a delete deletes; all writes must go through it, and one whose outcome is not known is the caller's to settle.
type RecordedCollection struct {
	recorder *Recorder
	things   *store.Collection
}

// Writes returns c, recorded.
func (r *Recorder) Collection(c *store.Collection) *RecordedCollection {
	return &RecordedCollection{r, c}
}

// Create is that of [store.Collection].
func (c *RecordedCollection) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	o, err := c.things.Create(ctx, data)
	if err == nil {
		c.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), After: c.recorder.ObjectState(o)})
	}
	return o, err
}

// Update is that of [store.Collection].
func (c *RecordedCollection) Update(
	ctx context.Context, key listwatch.Key, p store.Preconditions, change func(old *listwatch.Object) ([]byte, error),
) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	var before *listwatch.Object // what the last call of change was given, which is what was replaced
	o, err := c.things.Update(ctx, key, p, func(old *listwatch.Object) ([]byte, error) {
		before = old
		return change(old)
	})
	if err == nil && o.Version != before.Version {
		c.recorder.RecordWrite(began, Write{
			Version: o.Version, Key: Key(o.Key), Before: c.recorder.DeletedState(before, o.Version), After: c.recorder.ObjectState(o),
		})
	}
	return o, err
}

// Delete is that of [store.Collection].
func (c *RecordedCollection) Delete(ctx context.Context, key listwatch.Key, p store.Preconditions) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	o, err := c.things.Delete(ctx, key, p)
	if err == nil {
		c.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), Before: c.recorder.ObjectState(o)})
	}
	return o, err
}
