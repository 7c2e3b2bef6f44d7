package apihttp

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// maxQueryBytes limits the parameters of a QUERY.
const maxQueryBytes = 256 << 10

// OfferQuery sets the header by which clients learn that the path of a list or a watch also accepts
// QUERY.
func OfferQuery(h http.Header) { h.Set("Accept-Query", transport.QueryType) }

// readQuery reads the parameters of a QUERY, and returns the GET with these parameters in its URL,
// so that no handler needs to know the method. A parameter that is both in the URL and in the body
// is refused, because clients would disagree about its value.
func (a *Admitted) readQuery(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if err := checkQueryType(r.Header.Get("Content-Type")); err != nil {
		OfferQuery(w.Header())
		return r, err
	}
	data, err := a.readBody(w, r, maxQueryBytes)
	if err != nil {
		return r, bodyError(err, maxQueryBytes)
	}
	added, err := url.ParseQuery(string(data))
	if err != nil {
		return r, &listwatch.Error{Code: listwatch.Invalid, Message: "malformed parameters in the body: " + err.Error()}
	}
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r, errQuery(err)
	}
	for name, values := range added {
		if all.Has(name) {
			return r, &listwatch.Error{
				Code: listwatch.Invalid, Message: fmt.Sprintf("the URL and the body both have the parameter %q", name),
			}
		}
		all[name] = values
	}
	get, u := *r, *r.URL
	u.RawQuery = all.Encode()
	get.Method, get.URL, get.Body, get.ContentLength = http.MethodGet, &u, http.NoBody, 0
	a.passage.queryInBody = true
	return &get, nil
}

// checkQueryType returns an error if the body of a QUERY does not have the type
// [transport.QueryType]. The errors have the statuses of RFC 10008, section 2.
func checkQueryType(contentType string) error {
	if contentType == "" {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "QUERY needs a Content-Type: " + transport.QueryType}
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && mediaType == transport.QueryType {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("Content-Type %q: must be %s", contentType, transport.QueryType),
	}
}
