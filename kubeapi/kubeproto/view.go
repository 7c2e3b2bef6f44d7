package kubeproto

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/convert"
	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// A View shows objects of one kind, which a collection has as JSON, in Protocol Buffers; see
// [protobody.FromJSON]. It converts each object once, and remembers the result as long as the
// object exists. A View is safe for concurrent use.
type View struct {
	apiVersion, kind string

	converted      sync.Map     // from weak.Pointer[listwatch.Object] to *listwatch.Object
	objects, bytes atomic.Int64 // the number and the size of its values
}

// Stats returns the number and the size of the objects that v remembers. They share the labels and
// the fields of the objects in JSON.
func (v *View) Stats() listwatch.Stats {
	return listwatch.Stats{Objects: int(v.objects.Load()), ObjectBytes: v.bytes.Load()}
}

// NewView returns a View of the objects of a kind, or nil if the kind has no Protocol Buffers, such
// as a custom resource.
func NewView(apiVersion, kind string) *View {
	if !protobody.Knows(apiVersion, kind) {
		return nil
	}
	return &View{apiVersion: apiVersion, kind: kind}
}

// Object returns o in Protocol Buffers. If its JSON does not fit the kind, the error has code
// Corrupt and names the object.
func (v *View) Object(o *listwatch.Object) (*listwatch.Object, error) {
	p := weak.Make(o)
	if c, ok := v.converted.Load(p); ok {
		return c.(*listwatch.Object), nil
	}
	data, err := protobody.FromJSON(v.apiVersion, v.kind, o.Data)
	if err != nil {
		e := *listwatch.AsError(err)
		e.Message = o.Key.String() + ": " + e.Message
		return nil, &e
	}
	c := *o
	c.Data = data
	if _, loaded := v.converted.LoadOrStore(p, &c); !loaded {
		size := int64(len(data))
		v.count(1, size)
		runtime.AddCleanup(o, func(p weak.Pointer[listwatch.Object]) {
			v.converted.Delete(p)
			v.count(-1, -size)
		}, p)
	}
	return &c, nil
}

func (v *View) count(objects, bytes int64) {
	v.objects.Add(objects)
	v.bytes.Add(bytes)
}

// Objects returns objects in Protocol Buffers. The error is the error of [View.Object].
func (v *View) Objects(objects []*listwatch.Object) ([]*listwatch.Object, error) {
	return v.conversion().Objects(context.Background(), objects)
}

// conversion leaves what a Source makes itself in JSON; see [Framing].
func (v *View) conversion() *convert.Conversion {
	return &convert.Conversion{
		Object: func(_ context.Context, o *listwatch.Object) (*listwatch.Object, error) { return v.Object(o) },
	}
}

// Source returns s with its objects in Protocol Buffers. The selectors of a query see the JSON. A
// projection is not possible; see [listwatch.Description.Check].
func (v *View) Source(s listwatch.Source) listwatch.Source { return &viewSource{s, v.conversion()} }

type viewSource struct {
	of         listwatch.Source
	conversion *convert.Conversion
}

// Unwrap is for [listwatch.As].
func (s *viewSource) Unwrap() listwatch.Source { return s.of }

// Describe implements [listwatch.Describer].
func (s *viewSource) Describe() listwatch.Description {
	d := listwatch.Describe(s.of)
	d.Encoding = Encoding{}
	return d
}

// List implements [listwatch.Source].
func (s *viewSource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return s.conversion.List(ctx, s.of, q)
}

// Watch implements [listwatch.Source].
func (s *viewSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return s.conversion.Watch(ctx, s.of, q)
}
