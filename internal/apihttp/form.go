package apihttp

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A BodyForm is the form of a response that holds objects and is not a stream.
type BodyForm struct {
	Representation ListRepresentation // nil for the objects themselves
	MediaType      string
	Encoding       framing.ListEncoding // nil unless the objects have an encoding
	// Projection reduces the objects before they are represented.
	Projection listwatch.Projection
}

// ChooseBody chooses the form of a response that is a list or one object of the collection that d
// describes. If the request accepts nothing that is available, the error has code Unsupported and
// status 406.
func (a *Admitted) ChooseBody(list bool, d listwatch.Description) (BodyForm, error) {
	projection, err := a.Params.Projection()
	if err == nil {
		err = d.Check(&listwatch.Selection{Projection: projection})
	}
	if err != nil {
		return BodyForm{}, err
	}
	forms, encoding, err := bodyFormsOf(d)
	if err != nil {
		return BodyForm{}, err
	}
	if method := a.of.method; !projection.Empty() && method != http.MethodGet && method != http.MethodHead {
		// Otherwise a client could believe that a write with the parameter changes only the shown
		// members.
		return BodyForm{}, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: "fields: not allowed with " + method + ": use PATCH without it, or write the whole object",
		}
	}
	representation, accept, err := a.chooseRepresentation(forms, list, false)
	if err != nil {
		return BodyForm{}, err
	}
	if representation != nil && representation != (unmanaged{}) && encoding == nil {
		forms = jsonOnly // like kube-apiserver, which has no tables in CBOR
	}
	f, err := forms.Negotiate(accept, false)
	if err != nil {
		return BodyForm{}, err
	}
	return BodyForm{representation, f.MediaType(), encoding, projection}, nil
}

// setHeaders sets the headers that all responses in the form f have.
func (f BodyForm) setHeaders(h http.Header) {
	h.Set("Content-Type", f.MediaType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	SetFields(h, f.Projection)
}

// SetFields sets the header with p, unless it shows whole objects.
func SetFields(h http.Header, p listwatch.Projection) {
	if !p.Empty() {
		h.Set(transport.FieldsHeader, p.String())
	}
}

// SetEpoch sets the header with the epoch of source, if it has one.
func SetEpoch(h http.Header, source listwatch.Source) {
	if epoch := listwatch.Describe(source).Epoch; epoch != "" {
		h.Set(transport.EpochHeader, epoch)
	}
}

// WriteObject responds to r with status code, the headers in w, and o; see [WriteBody]. If r is a
// write whose client prefers a minimal response, it has no body.
func (f BodyForm) WriteObject(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) {
	if prefersMinimal(r) {
		writeMinimal(w, r, code, o)
		return
	}
	o = f.Projection.Reduce(o)
	body := o.Data
	if f.Representation != nil {
		body = f.Representation.AppendObject(nil, listwatch.Event{Type: listwatch.Added, Object: o, Version: o.Version})
	}
	f.setHeaders(w.Header())
	if f.Encoding != nil {
		WriteBody(w, r, code, body)
		return
	}
	// Pass the newline separately, because the data is shared and must not be modified.
	WriteBody(w, r, code, body, []byte{'\n'})
}
