package kubeapi

import (
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/kubeapi/protobody"
)

// framings are the framings of package framing, and that of watches in Kubernetes' Protocol
// Buffers.
var framings = func() *framing.Registry {
	r, err := framing.NewRegistry(append(framing.Default().Framers(), kubeproto.Framing{})...)
	if err != nil {
		panic("kubeapi: " + err.Error())
	}
	return r
}()

// A lazyView is the view of a resource in Protocol Buffers. The first request for it creates it.
type lazyView struct {
	apiVersion, kind string // immutable
	once             sync.Once
	view             atomic.Pointer[kubeproto.View]
}

// get returns the view, or nil if the kind has no Protocol Buffers.
func (l *lazyView) get() *kubeproto.View {
	l.once.Do(func() { l.view.Store(kubeproto.NewView(l.apiVersion, l.kind)) })
	return l.view.Load()
}

// Stats returns the sizes of the converted objects, which count against Limits.Memory.
func (l *lazyView) Stats() (s listwatch.Stats) {
	if v := l.view.Load(); v != nil {
		s = v.Stats()
	}
	return s
}

// prefersProtobuf reports whether the first range of the Accept header that the server can satisfy
// is Kubernetes' Protocol Buffers, as with typed clients of client-go. a.Represent has the
// representations of JSON. There are no projections in Protocol Buffers.
func (h *Handler) prefersProtobuf(r *http.Request, c call, query url.Values) bool {
	ranges, err := framing.ParseAccept(r.Header["Accept"])
	isProtobuf := func(m framing.MediaRange) bool { return m.Type+"/"+m.Subtype == protobody.MediaType }
	if err != nil || !slices.ContainsFunc(ranges, isProtobuf) || query.Has("fields") {
		return false
	}
	isList := c.Verb == "list" || c.Verb == "deletecollection"
	if c.Verb == "watch" && !slices.Contains(h.Server.Framings.Framers(), framing.Framer(kubeproto.Framing{})) {
		return false
	}
	for _, m := range apihttp.ByPreference(ranges) {
		plain := apihttp.WithoutRepresentation(m)
		represent := c.Admitted.Represent
		if isProtobuf(m) {
			represent = kubeproto.Represent
		} else if _, err := framing.Default().Negotiate([]framing.MediaRange{plain}, false); err != nil {
			continue
		}
		if m.Params["as"] != "" {
			if shape, err := represent(m.Params, isList); err != nil || shape == nil {
				continue
			}
		}
		return isProtobuf(m)
	}
	return false
}
