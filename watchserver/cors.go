package watchserver

import (
	"net/http"

	"github.com/listwatch/listwatch/transport"
)

// CORS lets pages of other origins use next, as the Fetch standard's CORS protocol says: origins are patterns as in
// [transport.OriginAllowed], and what they don't match gets no header that would let a page read the answer. Preflight requests are
// answered 204 here; requests that carry an Origin are otherwise passed on as they are.
func CORS(next http.Handler, origins []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Also where there is no Origin: what a cache keeps of that must not be the answer to a page (Fetch, "CORS protocol and HTTP
		// caches").
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		allowed := transport.OriginAllowed(r, origins)
		if allowed {
			// The origin by name and never "*", with which browsers send no credentials.
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Expose-Headers", EpochHeader+", Retry-After, Warning")
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
