package apihttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
)

const (
	// methodQuery is the method of RFC 10008: a GET whose parameters are in the body.
	methodQuery = "QUERY"
	// acceptQuery lists the types of the bodies, a list of tokens (RFC 10008, section 3).
	acceptQuery = "application/x-www-form-urlencoded, application/json"
	// maxQueryBytes limits the parameters of a QUERY.
	maxQueryBytes = 256 << 10
)

// OfferQuery sets the header by which clients learn that the path of a list or a watch also accepts
// QUERY.
func OfferQuery(h http.Header) { h.Set("Accept-Query", acceptQuery) }

// readQuery reads the parameters of a QUERY, and returns the GET with these parameters in its URL,
// so that no handler needs to know the method. A parameter that is both in the URL and in the body
// is refused, because clients would disagree about its value.
func (a *Admitted) readQuery(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	parse, err := queryParser(r.Header.Get("Content-Type"))
	if err != nil {
		OfferQuery(w.Header())
		return r, err
	}
	data, err := a.readBody(w, r, maxQueryBytes)
	if err != nil {
		return r, bodyError(err, maxQueryBytes)
	}
	added, err := parse(data)
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

// queryParser returns the parser of the given type of bodies. The errors have the statuses of RFC
// 10008, section 2.
func queryParser(contentType string) (func([]byte) (url.Values, error), error) {
	if contentType == "" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "QUERY needs a Content-Type: " + acceptQuery,
		}
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case mediaType == "application/x-www-form-urlencoded":
		return func(data []byte) (url.Values, error) { return url.ParseQuery(string(data)) }, nil
	case mediaType == jsonType:
		return parseJSONQuery, nil
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("Content-Type %q: must be one of %s", contentType, acceptQuery),
	}
}

// parseJSONQuery parses an object whose members are strings, numbers or booleans.
func parseJSONQuery(data []byte) (url.Values, error) {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	all := url.Values{}
	for name, value := range members {
		switch value.(type) {
		case string, json.Number, bool:
			all.Set(name, fmt.Sprint(value))
		default:
			return nil, fmt.Errorf("member %q: must be a string, a number or a boolean", name)
		}
	}
	return all, nil
}
