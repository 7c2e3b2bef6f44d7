package apihttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/transport"
)

// exposedHeaders are the headers of responses that pages may read.
const exposedHeaders = transport.EpochHeader + ", " + transport.FieldsHeader + ", " + transport.ConflateHeader +
	", Accept-Query, ETag, Location, Retry-After, Warning"

// CORS is documented at watchserver.CORS.
func CORS(next http.Handler, origins []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Vary is also needed for a request without an Origin: otherwise a cache could return this
		// response, which has no CORS headers, to a page (Fetch, "CORS protocol and HTTP caches").
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		allowed := transport.OriginAllowed(r, origins)
		if allowed {
			// Name the origin, because "*" would not allow requests with credentials.
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Expose-Headers", exposedHeaders)
		}
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		httpbody.Guard(w, r) // the request does not reach the gate
		if allowed {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, QUERY, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers",
				"Authorization, Content-Type, Accept, If-Match, Last-Event-ID, Prefer, X-Requested-With")
			h.Set("Access-Control-Max-Age", "600")
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// checkOrigin returns an error of code Forbidden if r is a write from a web page of another origin,
// unless one of the patterns in origins matches that origin (see [transport.OriginAllowed]). CORS
// alone does not prevent such writes, because browsers send some of them without a preflight
// request.
func checkOrigin(r *http.Request, origins []string) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, transport.MethodQuery:
		return nil // the WebSocket transport checks the origin itself
	}
	if site := foreignSite(r); site != "" && r.Header.Get("Origin") == "" {
		return forbidden(
			"web pages of other origins may not write to this server without an Origin (Sec-Fetch-Site: %s)", site)
	}
	if transport.OriginAllowed(r, origins) {
		return nil
	}
	return forbidden("web pages of origin %q may not write to this server, whose Host is %q",
		strings.Join(r.Header.Values("Origin"), ", "), r.Host)
}

// foreignSite returns the header Sec-Fetch-Site if it shows that r comes from a page of another
// origin, and otherwise "" (Fetch Metadata Request Headers, section 2.3). Browsers send some of
// these requests without an Origin, such as the GET of an image.
func foreignSite(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return site
	}
	return ""
}

// OwnPagesOnly returns a handler that refuses requests that pages of other origins send, whatever
// their method.
func OwnPagesOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !transport.OriginAllowed(r, nil) || foreignSite(r) != "" {
			WriteError(w, r, forbidden("requests from pages of other origins are not allowed"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkImpersonation refuses requests for impersonation. A server that ignored the headers of such
// a request would serve it with the rights of the sender.
func checkImpersonation(r *http.Request) error {
	if name := Impersonation(r); name != "" {
		return forbidden("impersonation is not supported: send the request without the header %s", name)
	}
	return nil
}

// Impersonation returns the name of a header by which r requests to be served as another user, or
// "" if there is none.
func Impersonation(r *http.Request) string {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return name
		}
	}
	return ""
}

func forbidden(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Forbidden, Message: fmt.Sprintf(format, args...)}
}
