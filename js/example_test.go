package js_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/listwatch/listwatch/js"
)

// The server also serves the JavaScript client to its pages.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("/js/", http.StripPrefix("/js", js.Handler()))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/js/listwatch.js", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/javascript; charset=utf-8
}
