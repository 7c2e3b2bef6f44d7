package transport

import (
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// framings returns Framings, or its default.
func (r *Request) framings() []framing.Framer {
	if r.Framings == nil {
		return []framing.Framer{framing.JSON{}}
	}
	return r.Framings
}

// AcceptHeader returns the value of the Accept header for r.Framings.
func (r *Request) AcceptHeader() string {
	var types []string
	for _, f := range r.framings() {
		types = append(types, f.MediaType())
	}
	return httpheader.Preferences(types)
}

// FramerFor returns the framer of r.Framings for the Content-Type of a response. For any
// other Content-Type, such as text/html of a proxy's error page, it returns an error of
// code Unsupported.
func (r *Request) FramerFor(contentType string) (framing.Framer, error) {
	known, err := framing.NewRegistry(r.framings()...)
	if err != nil {
		return nil, err
	}
	if f, ok := known.Lookup(contentType); ok {
		return f, nil
	}
	got := "no Content-Type"
	if contentType != "" {
		got = "Content-Type " + excerpt(contentType)
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK,
		Message: "the response has " + got + ", must be one of " + r.AcceptHeader(),
	}
}
