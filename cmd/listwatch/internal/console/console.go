// Package console serves a page for operators on the debug address: the open watches, the rate and
// the lag of events, limits, stores and relays. The page reads GET /metrics and GET /debug/watches
// of its own address, which never serves objects. It requests objects from the API, with
// credentials that the user enters. With the same credentials, it measures what a watch receives in
// vain.
package console

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/js"
)

//go:embed page
var files embed.FS

// AddTo adds the page to mux, below /console/. api returns the URLs of the API's listeners. The
// page may request objects from these URLs.
func AddTo(mux *http.ServeMux, api func() []string) {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /{$}", http.RedirectHandler("/console/", http.StatusFound))
	mux.Handle("GET /console/js/", http.StripPrefix("/console/js", js.Handler()))
	mux.HandleFunc("GET /console/api", func(w http.ResponseWriter, r *http.Request) {
		apihttp.WriteJSON(w, r, http.StatusOK, api())
	})
	mux.Handle("GET /console/waste", &wasteHandler{api: api})
	serve := http.StripPrefix("/console", http.FileServerFS(page))
	mux.HandleFunc("GET /console/", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		// This policy keeps text that a client of the server chose, such as a path, from running as
		// a script in the page.
		h.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; "+
				"form-action 'none'; frame-ancestors 'none'; connect-src 'self' "+strings.Join(api(), " "))
		serve.ServeHTTP(w, r)
	})
}
