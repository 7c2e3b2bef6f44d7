package clusterrelay

import (
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/kubeapi/table"
)

// protobuf is the framing of watches in Kubernetes' Protocol Buffers, and the form of lists.
var protobuf = kubeproto.Framing{}

// streams and bodies have the framings of watches, and the media types of other responses, that a
// cache can send.
var (
	streams = kubeproto.WithFraming(framing.Default().Framers()...)
	bodies  = kubeproto.WithFraming(framing.JSON{})
)

// framingsOf returns the framings of a client that reads objects in an encoding.
func framingsOf(e listwatch.Encoding) []framing.Framer {
	if e == nil {
		return nil
	}
	return []framing.Framer{protobuf}
}

// encodingName returns the name of an encoding in logs, metrics and the audit.
func encodingName(e listwatch.Encoding) string {
	if e == nil {
		return "json"
	}
	return "protobuf"
}

// A form is the form of a response.
type form struct {
	encoding listwatch.Encoding // nil for JSON
	accept   framing.MediaRange // the range of the Accept header that requests the form
}

// choose chooses the form of the response to c, the request r, as the API server does: the first
// range in the order of the client whose media type and representation the server has. offers
// reports whether the resource has a cache in an encoding, or may get one. choose returns false if
// only the API server can send the form. Caches also send the framings of this project.
//
// This is the only choice. What follows gets a request that accepts nothing but c.accept, so that
// the cache, its encoding and the representation fit together.
func (c *call) choose(r *http.Request, metadata *table.Table, offers func(listwatch.Encoding) bool) bool {
	header := r.Header["Accept"]
	ranges, err := framing.ParseAccept(header[:min(len(header), 1)]) // as the API server
	if err != nil {
		return false
	}
	if ranges == nil {
		ranges = []framing.MediaRange{{Type: "*", Subtype: "*", Q: 1000}}
	}
	query, _ := c.admitted.Query() // parseRead has checked it
	forms, messages := bodies, false
	if c.verb == "watch" {
		forms, messages = streams, r.Header.Get("Upgrade") != ""
	}
	for _, m := range apihttp.ByPreference(ranges) {
		plain := apihttp.WithoutRepresentation(m)
		if plain.Type+"/"+plain.Subtype == "application/yaml" {
			return false // only the API server has it
		}
		f, err := forms.Negotiate([]framing.MediaRange{plain}, messages)
		if err != nil {
			continue
		}
		encoding := framing.EncodingOf(f)
		if encoding != nil && (query.Has("fields") || query.Has("pretty")) || !offers(encoding) {
			continue
		}
		if len(plain.Params) < len(m.Params) {
			isList := c.verb == "list"
			shape, err := represent(metadata, encoding, query)(m.Params, isList)
			other, _ := represent(metadata, encoding, query)(m.Params, !isList)
			switch {
			case err == nil && shape == nil && other == nil:
				continue
			case err != nil, shape == nil, m.Params["as"] == "Table":
				// The API server refuses metadata of a list for one object, and the other way
				// round. Only it knows the columns of every resource.
				return false
			}
		}
		c.form = form{encoding, m}
		return true
	}
	return false
}

// represent returns the representations of objects in an encoding. metadata has those of JSON.
func represent(metadata *table.Table, e listwatch.Encoding, query url.Values) apihttp.RepresentationFunc {
	if e == nil {
		return metadata.Represent(query)
	}
	return kubeproto.Represent
}
