// Command dashboard serves two pages that show the current flags and let people change them: one
// without a build step, and one with React and TanStack DB.
package main

import (
	"context"
	_ "embed"
	"flag"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/typed"
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
	react := flag.String("react", "examples/dashboard/react/dist", "directory with the built page for React")
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
	server := &http.Server{Handler: newHandler(flags, *react)}
	h2.Configure(server, h2.Config{})
	log.Print("open http://", listener.Addr())
	if _, err := os.Stat(*react); err != nil {
		log.Printf("the page /react/ is not built: %v; docs/browsers.md has the commands", err)
	}
	log.Fatal(server.Serve(listener))
}

// newHandler returns a handler that serves the pages, the JavaScript client and the flags. The
// directory react contains the page for React; it is empty until the page is built.
func newHandler(flags typed.Collection[Flag], react string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // an error means that the browser has disconnected
	})
	mux.Handle("GET /react/", http.StripPrefix("/react", http.FileServer(http.Dir(react))))
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	writable := &crudserver.Handler{Path: "/flags", Collection: store.CollectionOf(flags)}
	mux.Handle("/flags", writable)
	mux.Handle("/flags/", writable)
	return mux
}
