// Command dashboard serves a page that shows the current flags and lets people toggle them.
package main

import (
	"context"
	_ "embed"
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchserver"
)

// A Flag is a feature of a program that can be switched on and off.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8082", "address to listen on")
	flag.Parse()
	flags := memory.New[Flag]()
	for _, name := range []string{"dark-mode", "new-search", "invoices"} {
		if _, err := flags.Create(context.Background(), Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			log.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: newHandler(flags)}
	h2.Configure(server, h2.Config{})
	log.Print("open http://", listener.Addr())
	log.Fatal(server.Serve(listener))
}

// newHandler returns a handler that serves the page, the JavaScript client and the flags, and
// handles the requests that the buttons send.
func newHandler(flags typed.Collection[Flag]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // an error means that the browser has disconnected
	})
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.Handle("GET /flags", &watchserver.Server{Source: flags})
	mux.HandleFunc("POST /flags/{name}/toggle", func(w http.ResponseWriter, r *http.Request) {
		if !transport.OriginAllowed(r, nil) { // reject requests from pages of other sites
			http.Error(w, "requests from pages of other origins are not allowed", http.StatusForbidden)
			return
		}
		key := listwatch.Key{Name: r.PathValue("name")}
		_, err := flags.Update(r.Context(), key, func(f *Flag) error { f.Enabled = !f.Enabled; return nil })
		if err != nil {
			watchserver.WriteError(w, r, err)
		}
	})
	return mux
}
