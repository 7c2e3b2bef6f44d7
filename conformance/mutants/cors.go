package mutants

import (
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/conformance/cases"
)

// corsMutants break the cases of pages.
var corsMutants = []Mutant{
	{"wants-an-origin", []string{"cors/ws-no-origin"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if r.Header.Get("Origin") == "" {
			r.Header.Set("Origin", "https://evil.example")
		}
	})}},
	{"looks-at-no-origin", []string{"cors/ws-foreign-origin", "cors/ws-null-origin"}, cases.Interceptors{
		Handler: onRequest(func(r *http.Request) { r.Header.Del("Origin") }),
	}},
	{"null-is-nobody", []string{"cors/ws-null-origin"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if r.Header.Get("Origin") == "null" {
			r.Header.Del("Origin")
		}
	})}},
	{"compares-origins-letter-by-letter", []string{"cors/same-origin"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			r.Header.Set("Origin", "https://evil.example")
		}
	})}},
	{"looks-at-how-origins-begin", []string{"cors/ws-foreign-origin"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Origin"), page) {
			r.Header.Set("Origin", page)
		}
	})}},
	{"asks-preflights-who-they-are", []string{"cors/preflight"}, cases.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}},
	{"allows-all-that-ask", []string{"cors/preflight", "cors/simple", "cors/eventsource"}, cases.Interceptors{Handler: onHeader(func(h http.Header) {
		h.Set("Access-Control-Allow-Origin", page)
		h.Set("Access-Control-Allow-Credentials", "true")
	})}},
	{"allows-all-by-a-star", []string{"cors/simple", "cors/eventsource"}, cases.Interceptors{Handler: onHeader(func(h http.Header) {
		h.Set("Access-Control-Allow-Origin", "*")
	})}},
	{"is-the-same-to-all-pages", []string{"cors/simple"}, cases.Interceptors{Handler: onHeader(func(h http.Header) { h.Del("Vary") })}},
}

// page is where the page is from that the cases let in.
const page = "https://app.example.com"
