package crudserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A collection in memory is served for reading, watching and writing below /flags.
func ExampleHandler() {
	flags := memory.New[Flag]()
	h := &crudserver.Handler{Path: "/flags", Collection: store.CollectionOf(flags)}
	mux := http.NewServeMux()
	mux.Handle("/flags", h)
	mux.Handle("/flags/", h)
	server := httptest.NewServer(mux)
	defer server.Close()

	send := func(method, path, ifMatch, body string) {
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		if ifMatch != "" {
			r.Header.Set("If-Match", ifMatch)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		fmt.Println(method, path, resp.Status)
	}
	send("POST", "/flags", "", `{"metadata":{"name":"dark-mode"}}`)
	send("PUT", "/flags/dark-mode", `"1"`, `{"metadata":{"name":"dark-mode"},"enabled":true}`)
	send("DELETE", "/flags/dark-mode", `"*"`, "")
	send("DELETE", "/flags/dark-mode", "*", "")
	// Output:
	// POST /flags 201 Created
	// PUT /flags/dark-mode 412 Precondition Failed
	// DELETE /flags/dark-mode 400 Bad Request
	// DELETE /flags/dark-mode 200 OK
}
