// Package js serves the JavaScript client of this module to web pages, so that they need no build
// step:
//
//	mux.Handle("/js/", http.StripPrefix("/js", js.Handler()))
//
// A page imports it from there:
//
//	import { collection } from "/js/listwatch.js";
//
// The folder is also the npm package listwatch. docs/browsers.md explains its use.
package js

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"strings"
)

// Files holds the client: listwatch.js, the files that it imports, and listwatch.d.ts.
//
//go:embed listwatch.js listwatch.d.ts src/*.js
var Files embed.FS

// Handler serves Files below its root. Responses may be cached but are always revalidated, so after
// an upgrade of the server a reload gets the new files.
func Handler() http.Handler {
	files := http.FileServerFS(Files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		data, err := Files.ReadFile(name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		sum := sha256.Sum256(data)
		h := w.Header()
		h.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", contentType(name))
		files.ServeHTTP(w, r)
	})
}

// contentType returns the Content-Type of a file. Browsers run a module only if it has a JavaScript
// type. The MIME table of the machine is not used, because it may be wrong.
func contentType(name string) string {
	if strings.HasSuffix(name, ".js") {
		return "text/javascript; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
