package watchserver

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Representation is a shape other than their own in which objects can be had, one by one in a watch and together in a list.
type ListRepresentation interface {
	transport.Representation
	// AppendListHead appends a list up to the bracket before its items; metadata is the list's, in JSON.
	AppendListHead(dst, metadata []byte) []byte
	// AppendItem appends what stands for o in a list.
	AppendItem(dst []byte, o *listwatch.Object) []byte
}

// A Representer returns the [Representation] that the parameters of a media range ask for, such as as=Table, g=meta.k8s.io and
// v=v1; those that any framing fulfils may be among them. list is true where many objects are answered as one. Nil without an error:
// there is no such representation, and the client's next choice counts. With an error the request is refused.
type RepresentationFunc func(params map[string]string, list bool) (ListRepresentation, error)

// Represent chooses the representation of single objects that the Accept headers of r like best; nil: as they are, in JSON. An error
// is a *listwatch.Error; where nothing matches it has code Unsupported, and status 406.
func ChooseRepresentation(r *http.Request, offer RepresentationFunc) (ListRepresentation, error) {
	return representJSON(r, offer, false)
}

// representJSON is represent for answers that can be had in JSON alone, and refuses those that would have to be something else.
func representJSON(r *http.Request, offer RepresentationFunc, list bool) (ListRepresentation, error) {
	shape, r, err := represent(r, jsonAlone, offer, list)
	if err == nil {
		err = RequireJSON(r.Header.Values("Accept"))
	}
	return shape, err
}

// AcceptsJSON returns an error of code Unsupported, status 406, where the values of the Accept headers exclude JSON.
func RequireJSON(accept []string) error {
	_, err := jsonAlone.Negotiate(accept, false)
	return err
}

// represent chooses a representation; nil: objects as they are, or nothing matches. The request that it returns is r, but for its
// Accept headers: they are those for the framing, about which package framing decides.
func represent(r *http.Request, framings *framing.Registry, offer RepresentationFunc, list bool) (ListRepresentation, *http.Request, error) {
	ranges, err := framing.ParseAccept(r.Header.Values("Accept"))
	if err != nil || offer == nil {
		return nil, r, err
	}
	for _, m := range byPreference(ranges) {
		plain := withoutShape(m)
		if _, err := framings.Negotiate([]string{plain.String()}, false); err != nil {
			continue
		}
		if len(plain.Params) == len(m.Params) {
			break // an object as it is
		}
		shape, err := offer(m.Params, list)
		if err != nil {
			return nil, r, err
		}
		if shape != nil {
			return shape, acceptShaped(r, ranges, m), nil
		}
	}
	return nil, r, nil
}

// byPreference sorts ranges by weight, then those that name a type before those with wildcards, then as the client has them.
func byPreference(ranges []framing.MediaRange) []framing.MediaRange {
	breadth := func(m framing.MediaRange) int { return strings.Count(m.Type+m.Subtype, "*") }
	return slices.SortedStableFunc(slices.Values(ranges), func(a, b framing.MediaRange) int {
		return cmp.Or(cmp.Compare(b.Q, a.Q), cmp.Compare(breadth(a), breadth(b)))
	})
}

// shapeParams are the parameters that ask for a representation: its kind, group and version.
var shapeParams = [...]string{"as", "g", "v"}

func withoutShape(m framing.MediaRange) framing.MediaRange {
	m.Params = maps.Clone(m.Params)
	for _, name := range shapeParams {
		delete(m.Params, name)
	}
	return m
}

// acceptShaped returns r with those of its ranges that ask for the representation that chosen asks for, as ranges for the framing.
func acceptShaped(r *http.Request, ranges []framing.MediaRange, chosen framing.MediaRange) *http.Request {
	var accept []string
	for _, m := range ranges {
		same := true
		for _, name := range shapeParams {
			same = same && m.Params[name] == chosen.Params[name]
		}
		if same {
			accept = append(accept, withoutShape(m).String())
		}
	}
	r = r.WithContext(r.Context()) // a copy
	r.Header = r.Header.Clone()
	r.Header["Accept"] = accept
	return r
}
