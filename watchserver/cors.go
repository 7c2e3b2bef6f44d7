package watchserver

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// CORS wraps the handler next so that pages of other origins can read its responses, as the
// CORS protocol of the Fetch standard specifies. origins are patterns as in
// [transport.OriginAllowed]. Responses to other origins get no Access-Control headers, so
// browsers do not let pages read them.
//
// CORS answers preflight requests itself, with status 204, and passes all other requests on to
// next unchanged.
func CORS(next http.Handler, origins []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Vary is also needed for a request without an Origin: otherwise a cache could return this
		// response to a page (Fetch, "CORS protocol and HTTP caches").
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		allowed := transport.OriginAllowed(r, origins)
		if allowed {
			// Browsers send no credentials if the value is "*".
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Expose-Headers", transport.EpochHeader+", Retry-After, Warning")
		}
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		if allowed {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, X-Requested-With")
			h.Set("Access-Control-Max-Age", "600")
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// CheckOrigin returns an error of code Forbidden if r is a write from a web page of another origin
// that origins, patterns as in [transport.OriginAllowed], do not allow. CORS alone does not prevent
// such writes, because browsers send some of them without a preflight request.
func CheckOrigin(r *http.Request, origins []string) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil // the WebSocket transport checks the origin itself
	}
	if transport.OriginAllowed(r, origins) {
		return nil
	}
	return &listwatch.Error{
		Code:    listwatch.Forbidden,
		Message: fmt.Sprintf("web pages of origin %q may not write to this server", strings.Join(r.Header.Values("Origin"), ", ")),
	}
}
