package clusterrelay

import (
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// streams and bodies have the framings of watches, and the media types of other responses, that a
// cache can send.
var streams, bodies = framing.Default(), newRegistry(framing.JSON{})

func newRegistry(framers ...framing.Framer) *framing.Registry {
	r, err := framing.NewRegistry(framers...)
	if err != nil {
		panic("clusterrelay: " + err.Error())
	}
	return r
}

// choose chooses the form of the response to c, the request r, as the API server does: the first
// range in the order of the client whose media type and representation the server has. It sets
// c.accept to this range. It returns false if only the API server can send that form. Caches also
// send the framings of this project.
//
// This is the only choice. What follows gets a request that accepts nothing but c.accept, so that
// the cache, its encoding and the representation fit together.
func (c *call) choose(r *http.Request, represent func(url.Values) apihttp.RepresentationFunc) bool {
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
		if isServedOnlyByServer(plain) {
			return false
		}
		if _, err := forms.Negotiate([]framing.MediaRange{plain}, messages); err != nil {
			continue
		}
		if len(plain.Params) < len(m.Params) {
			shape, err := represent(query)(m.Params, c.verb == "list")
			if err == nil && shape == nil {
				continue
			}
			if err != nil || m.Params["as"] == "Table" {
				return false // only the API server knows the columns of every resource
			}
		}
		c.accept = m
		return true
	}
	return false
}

// isServedOnlyByServer reports whether the API server can send objects in m, but a cache cannot.
func isServedOnlyByServer(m framing.MediaRange) bool {
	switch m.Type + "/" + m.Subtype {
	case "application/yaml", "application/vnd.kubernetes.protobuf":
		return true
	}
	return false
}
