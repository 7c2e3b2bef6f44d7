package relay

import (
	"context"
	"strings"

	"github.com/listwatch/listwatch"
)

// A projected Source requests the projection of a relay.
type projected struct {
	listwatch.Source
	projection listwatch.Projection
}

func (p projected) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	q.Projection = p.projection
	return p.Source.List(ctx, q)
}

func (p projected) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q.Projection = p.projection
	return p.Source.Watch(ctx, q)
}

// Unwrap returns the Source that p wraps; see [listwatch.Source].
func (p projected) Unwrap() listwatch.Source { return p.Source }

// Projection returns [Options.Projection].
func (r *Relay) Projection() listwatch.Projection { return r.options.Projection }

// checkShown returns an error if q depends on members that the relay does not have. Without this
// check, a selector would silently select nothing.
func (r *Relay) checkShown(q listwatch.Query) error {
	p := r.options.Projection
	switch {
	case !p.Contains(q.Projection) && !q.Projection.Empty():
		return r.notShown("fields", q.Projection.String())
	case !q.Labels.Empty() && !p.Covers("metadata", "labels"):
		return r.notShown("labelSelector", "metadata.labels")
	}
	d := r.describe("")
	for _, field := range q.Fields.Paths() {
		if field == listwatch.FieldName || field == listwatch.FieldNamespace {
			continue
		}
		for _, path := range d.FieldPaths(field) {
			if !p.Covers(strings.Split(path, ".")...) {
				return r.notShown("fieldSelector", path)
			}
		}
	}
	return nil
}

func (r *Relay) notShown(parameter, needed string) error {
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: parameter + ": needs " + needed + ", but the relay has only " + r.options.Projection.String(),
	}
}
