package checker

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A RecordedCollection writes to a store.Collection and records the acknowledged writes. It
// is safe for concurrent use.
//
// All writes of the run must go through it. Objects must not have finalizers, so that a
// delete takes effect immediately. If a write fails without a known outcome, the caller
// must find out the outcome and record it.
type RecordedCollection struct {
	recorder *Recorder
	things   *store.Collection
}

// Collection returns a RecordedCollection that writes to c.
func (r *Recorder) Collection(c *store.Collection) *RecordedCollection {
	return &RecordedCollection{r, c}
}

// Create calls [store.Collection.Create] and records the write.
func (c *RecordedCollection) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	o, err := c.things.Create(ctx, data)
	if err == nil {
		c.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), After: c.recorder.ObjectState(o)})
	}
	return o, err
}

// Update calls [store.Collection.Update] and records the write, unless nothing changed.
func (c *RecordedCollection) Update(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions, change func(old *listwatch.Object) ([]byte, error),
) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	// before is the replaced object, which the last call of change received.
	var before *listwatch.Object
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

// Delete calls [store.Collection.Delete] and records the write.
func (c *RecordedCollection) Delete(ctx context.Context, key listwatch.Key, p listwatch.Preconditions) (*listwatch.Object, error) {
	began := c.recorder.Elapsed()
	o, err := c.things.Delete(ctx, key, p)
	if err == nil {
		c.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), Before: c.recorder.ObjectState(o)})
	}
	return o, err
}
