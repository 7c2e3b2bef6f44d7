package mutants

import (
	"net/http"
	"strings"
)

// allowedOrigin is the origin that the server allows in the cases about requests from web pages.
const allowedOrigin = "https://app.example.com"

// corsMutants are servers with one defect each, which the cases about requests from web pages
// must detect.
var corsMutants = []mutant{
	{
		Name: "requires-an-origin", Breaks: []string{"cors/ws-no-origin"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Header.Get("Origin") == "" {
				r.Header.Set("Origin", "https://evil.example")
			}
		})},
	},
	{
		Name: "ignores-the-origin", Breaks: []string{"cors/ws-foreign-origin", "cors/ws-null-origin"},
		Defect: defect{
			Handler: onRequest(func(r *http.Request) { r.Header.Del("Origin") }),
		},
	},
	{
		Name: "accepts-the-null-origin", Breaks: []string{"cors/ws-null-origin"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Header.Get("Origin") == "null" {
				r.Header.Del("Origin")
			}
		})},
	},
	{
		Name: "compares-origins-byte-by-byte", Breaks: []string{"cors/same-origin"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
				r.Header.Set("Origin", "https://evil.example")
			}
		})},
	},
	{
		Name: "compares-origins-by-prefix", Breaks: []string{"cors/ws-foreign-origin"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Origin"), allowedOrigin) {
				r.Header.Set("Origin", allowedOrigin)
			}
		})},
	},
	{
		Name: "requires-credentials-for-preflights", Breaks: []string{"cors/preflight"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodOptions {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		}},
	},
	{
		Name:   "names-the-allowed-origin-in-every-response",
		Breaks: []string{"cors/preflight", "cors/simple", "cors/eventsource"},
		Defect: defect{Handler: onHeader(func(h http.Header) {
			h.Set("Access-Control-Allow-Origin", allowedOrigin)
			h.Set("Access-Control-Allow-Credentials", "true")
		})},
	},
	{
		Name: "allows-origins-by-wildcard", Breaks: []string{"cors/simple", "cors/eventsource"},
		Defect: defect{Handler: onHeader(func(h http.Header) {
			h.Set("Access-Control-Allow-Origin", "*")
		})},
	},
	{
		Name: "omits-vary", Breaks: []string{"cors/simple"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Del("Vary") })},
	},
}
