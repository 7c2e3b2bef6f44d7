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
func (r *RecordedCollection) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	began := r.recorder.Elapsed()
	o, err := r.things.Create(ctx, data)
	if err == nil {
		r.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), After: r.recorder.ObjectState(o)})
	}
	return o, err
}

// Update calls [store.Collection.Update] and records the write, unless nothing changed.
func (r *RecordedCollection) Update(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
	change func(old *listwatch.Object) ([]byte, error),
) (*listwatch.Object, error) {
	began := r.recorder.Elapsed()
	// before is the argument of the last call of change: the object that the update replaces.
	var before *listwatch.Object
	o, err := r.things.Update(ctx, key, p, func(old *listwatch.Object) ([]byte, error) {
		before = old
		return change(old)
	})
	if err == nil && o.Version != before.Version {
		r.recorder.RecordWrite(began, Write{
			Version: o.Version, Key: Key(o.Key), Before: r.recorder.DeletedState(before, o.Version),
			After: r.recorder.ObjectState(o),
		})
	}
	return o, err
}

// Delete calls [store.Collection.Delete] and records the write.
func (r *RecordedCollection) Delete(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
) (*listwatch.Object, error) {
	began := r.recorder.Elapsed()
	o, err := r.things.Delete(ctx, key, p)
	if err == nil {
		r.recorder.RecordWrite(began, Write{Version: o.Version, Key: Key(o.Key), Before: r.recorder.ObjectState(o)})
	}
	return o, err
}
