package apihttp

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// The media types of responses that are not streams.
const (
	jsonType = "application/json"
	cborType = "application/cbor"
)

// cborBody makes the negotiation offer application/cbor, the type of a body that is one CBOR item.
type cborBody struct{ framing.CBORSeq }

func (cborBody) MediaType() string { return cborType }

// An encodedBody makes the negotiation offer the media type of a list or an object with an
// encoding.
type encodedBody struct {
	framing.JSON
	encoding framing.ListEncoding
}

func (e encodedBody) MediaType() string            { return e.encoding.MediaType() }
func (e encodedBody) Encoding() listwatch.Encoding { return e.encoding }

// bodyFormsOf returns the media types of lists and single objects of a collection, and its
// encoding, which is nil for JSON.
func bodyFormsOf(d listwatch.Description) (*framing.Registry, framing.ListEncoding, error) {
	if d.Encoding == nil {
		return bodyForms, nil, nil
	}
	e, ok := d.Encoding.(framing.ListEncoding)
	if !ok {
		return nil, nil, d.RequireJSON("a list over HTTP")
	}
	forms, err := framing.NewRegistry(encodedBody{encoding: e})
	return forms, e, err
}

// BodyFormsOfJSON returns framings that have the media types of lists and of single objects of a
// collection in JSON, to negotiate with.
func BodyFormsOfJSON() []framing.Framer { return bodyForms.Framers() }

// bodyForms holds the media types of lists and of single objects. jsonOnly holds only JSON.
var bodyForms, jsonOnly = newRegistry(framing.JSON{}, cborBody{}), newRegistry(framing.JSON{})

func newRegistry(framers ...framing.Framer) *framing.Registry {
	r, err := framing.NewRegistry(framers...)
	if err != nil {
		panic("apihttp: " + err.Error())
	}
	return r
}

// BodyType returns the media type of a response to r that is not a stream: application/json, or
// application/cbor if r prefers it. If r accepts neither, the error has code Unsupported and status
// 406.
func BodyType(r *http.Request) (string, error) {
	accept, err := AcceptOf(r)
	if err != nil {
		return "", err
	}
	f, err := bodyForms.Negotiate(accept, false)
	if err != nil {
		return "", err
	}
	return f.MediaType(), nil
}

// RequireJSON returns an error with code Unsupported and status 406 if accept excludes JSON. It
// returns err, an error of parsing accept, unchanged.
func RequireJSON(accept []framing.MediaRange, err error) error {
	if err == nil {
		_, err = jsonOnly.Negotiate(accept, false)
	}
	return err
}

// ChooseStream chooses the representation of the objects in a watch. It also returns the ranges
// that remain for the negotiation of its framing. If messages is true, only framings that have a
// message form are available.
func (a *Admitted) ChooseStream(
	framings *framing.Registry, messages bool,
) (ListRepresentation, []framing.MediaRange, error) {
	return a.chooseRepresentation(framings, false, messages)
}

// chooseRepresentation returns the representation that the request prefers, without
// metadata.managedFields if the client drops them, and the ranges that remain
// for the negotiation of its framing. These are the ranges of that representation, without the
// parameters that request it. If the request prefers the objects themselves or nothing matches,
// chooseRepresentation returns nil and all ranges.
func (a *Admitted) chooseRepresentation(
	framings *framing.Registry, list, messages bool,
) (ListRepresentation, []framing.MediaRange, error) {
	if a.acceptErr != nil {
		return nil, nil, a.acceptErr
	}
	for _, m := range ByPreference(a.accept) {
		plain := WithoutRepresentation(m)
		f, err := framings.Negotiate([]framing.MediaRange{plain}, messages)
		if err != nil {
			continue
		}
		var shape ListRepresentation
		isRequested, isEncoded := len(plain.Params) < len(m.Params), framing.EncodingOf(f) != nil
		if isRequested || isEncoded && dropsManagedFields(m) {
			if a.Represent != nil && f != framing.Framer(cborBody{}) {
				shape, err = a.Represent(m.Params, list)
			}
			if err != nil {
				return nil, nil, err
			}
			if shape == nil && isRequested {
				continue
			}
		}
		if dropsManagedFields(m) && !isEncoded {
			shape = unmanaged{shape}
		}
		if shape == nil {
			break // the client prefers the objects themselves
		}
		return shape, rangesOf(a.accept, m), nil
	}
	return nil, a.accept, nil
}

// ByPreference sorts ranges by weight, then by the number of wildcards, and otherwise keeps the
// client's order.
func ByPreference(ranges []framing.MediaRange) []framing.MediaRange {
	wildcards := func(m framing.MediaRange) int { return strings.Count(m.Type+m.Subtype, "*") }
	return slices.SortedStableFunc(slices.Values(ranges), func(a, b framing.MediaRange) int {
		return cmp.Or(cmp.Compare(b.Q, a.Q), cmp.Compare(wildcards(a), wildcards(b)))
	})
}

// representationParams are the parameters that request a representation: its kind, group and
// version.
var representationParams = [...]string{"as", "g", "v"}

// WithoutRepresentation returns m without the parameters that request a representation.
func WithoutRepresentation(m framing.MediaRange) framing.MediaRange {
	m.Params = maps.Clone(m.Params)
	for _, name := range representationParams {
		delete(m.Params, name)
	}
	return m
}

// rangesOf returns the elements of accept that request the same representation as chosen, without
// the parameters that request it.
func rangesOf(accept []framing.MediaRange, chosen framing.MediaRange) (ranges []framing.MediaRange) {
	for _, m := range accept {
		same := dropsManagedFields(m) == dropsManagedFields(chosen)
		for _, name := range representationParams {
			same = same && m.Params[name] == chosen.Params[name]
		}
		if same {
			ranges = append(ranges, WithoutRepresentation(m))
		}
	}
	return ranges
}
