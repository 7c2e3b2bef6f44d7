package transport

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// framings returns what r understands.
func (r *Request) framings() []framing.Framer {
	if r.Framings == nil {
		return []framing.Framer{framing.JSON{}}
	}
	return r.Framings
}

// Accept returns the value of Accept that asks for r.Framings, in order of preference.
func (r *Request) AcceptHeader() string {
	var types []string
	for _, f := range r.framings() {
		types = append(types, f.MediaType())
	}
	return httpheader.Preferences(types)
}

// Framer returns the one of r.Framings that a response with the given Content-Type has, or an error of code Unsupported: what came
// may be a proxy's page.
func (r *Request) FramerFor(contentType string) (framing.Framer, error) {
	known, err := framing.NewRegistry(r.framings()...)
	if err != nil {
		return nil, err
	}
	if f, ok := known.Lookup(contentType); ok {
		return f, nil
	}
	said := "no Content-Type"
	if contentType != "" {
		said = "the Content-Type " + excerpt(contentType)
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK, Message: "the answer has " + said + ", want one of " + r.AcceptHeader(),
	}
}
