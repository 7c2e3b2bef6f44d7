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

// streams and bodies have the framings of watches, and the media types of other responses.
var (
	streams = kubeproto.WithFraming(framing.Default().Framers()...)
	bodies  = kubeproto.WithFraming(apihttp.BodyFormsOfJSON()...)
)

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
// is Kubernetes' Protocol Buffers, as with typed clients of client-go. c.Admitted.Represent has the
// representations of JSON. There are no projections in Protocol Buffers.
func (h *Handler) prefersProtobuf(r *http.Request, c call, query url.Values) bool {
	ranges, err := apihttp.AcceptOf(r)
	isProtobuf := func(m framing.MediaRange) bool { return m.Type+"/"+m.Subtype == protobody.MediaType }
	if err != nil || !slices.ContainsFunc(ranges, isProtobuf) || query.Has("fields") {
		return false
	}
	forms, messages := bodies, false
	if c.Verb == "watch" {
		forms, messages = h.Server.Framings, r.Header.Get("Upgrade") != ""
	}
	isList := c.Verb == "list" || c.Verb == "deletecollection"
	for _, m := range apihttp.ByPreference(ranges) {
		f, err := forms.Negotiate([]framing.MediaRange{apihttp.WithoutRepresentation(m)}, messages)
		if err != nil {
			continue
		}
		isEncoded, represent := framing.EncodingOf(f) != nil, c.Admitted.Represent
		if isEncoded {
			represent = kubeproto.Represent
		}
		if m.Params["as"] != "" {
			if shape, err := represent(m.Params, isList); err != nil || shape == nil {
				continue
			}
		}
		return isEncoded
	}
	return false
}
