package auth

import (
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// CORSMutants break the cases of pages.
var CORSMutants = []mutation.Mutant{
	{Name: "wants-an-origin", Breaks: []string{"cors/ws-no-origin"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if r.Header.Get("Origin") == "" {
			r.Header.Set("Origin", "https://evil.example")
		}
	})}},
	{Name: "looks-at-no-origin", Breaks: []string{"cors/ws-foreign-origin", "cors/ws-null-origin"}, Defect: reference.Interceptors{
		Handler: mutation.OnRequest(func(r *http.Request) { r.Header.Del("Origin") }),
	}},
	{Name: "null-is-nobody", Breaks: []string{"cors/ws-null-origin"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if r.Header.Get("Origin") == "null" {
			r.Header.Del("Origin")
		}
	})}},
	{Name: "compares-origins-letter-by-letter", Breaks: []string{"cors/same-origin"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			r.Header.Set("Origin", "https://evil.example")
		}
	})}},
	{Name: "looks-at-how-origins-begin", Breaks: []string{"cors/ws-foreign-origin"}, Defect: reference.Interceptors{Handler: mutation.OnRequest(func(r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Origin"), foreignPage) {
			r.Header.Set("Origin", foreignPage)
		}
	})}},
	{Name: "asks-preflights-who-they-are", Breaks: []string{"cors/preflight"}, Defect: reference.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}},
	{Name: "allows-all-that-ask", Breaks: []string{"cors/preflight", "cors/simple", "cors/eventsource"}, Defect: reference.Interceptors{Handler: mutation.OnHeader(func(h http.Header) {
		h.Set("Access-Control-Allow-Origin", foreignPage)
		h.Set("Access-Control-Allow-Credentials", "true")
	})}},
	{Name: "allows-all-by-a-star", Breaks: []string{"cors/simple", "cors/eventsource"}, Defect: reference.Interceptors{Handler: mutation.OnHeader(func(h http.Header) {
		h.Set("Access-Control-Allow-Origin", "*")
	})}},
	{Name: "is-the-same-to-all-pages", Breaks: []string{"cors/simple"}, Defect: reference.Interceptors{Handler: mutation.OnHeader(func(h http.Header) { h.Del("Vary") })}},
}

// foreignPage is where the page is from that the cases let in.
const foreignPage = "https://app.example.com"
