// Command orders shows each user the rows of a PostgreSQL table that belong to the user's tenant.
package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8083", "address to listen on")
	database := flag.String("database", "postgres://lw@localhost/shop", "PostgreSQL database")
	table := flag.String("table", "orders", "table to serve")
	tenant := flag.String("tenant", "tenant", "column with the tenant of a row")
	users := users{"ada": "acme", "bob": "globex"}
	flag.Var(users, "user", "additional user and tenant, such as eve=acme (repeatable)")
	key := flag.String("key", rand.Text(), "secret that signs tokens, the same for all servers")
	react := flag.String("react", "examples/dashboard/react/dist", "directory with the built page for React")
	flag.Parse()
	ctx := context.Background()
	trace := &postgres.Trace{Lost: func(err error) { slog.Warn("reading the table again", "reason", err) }}
	db, err := postgres.Open(ctx, *database, postgres.Options{Trace: trace},
		postgres.Table{Name: *table, Kind: "Row", Namespace: *tenant})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	rows := db.Table(*table, store.CollectionSpec{Plural: "rows"})
	server := &http.Server{Handler: newHandler(rows, &issuer{[]byte(*key), users}, *react)}
	h2.Configure(server, h2.Config{})
	log.Print("open http://", listener.Addr())
	go func() { log.Fatal(server.Serve(listener)) }()
	log.Fatal(db.Wait()) // the database was replaced; a supervisor starts the program again
}

// newHandler returns a handler that serves the pages, the JavaScript client, tokens and the rows.
// The directory react contains the page for React; it is empty until the page is built.
func newHandler(rows *store.Collection, tokens *issuer, react string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // an error means that the browser has disconnected
	})
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.Handle("GET /react/", http.StripPrefix("/react", http.FileServer(http.Dir(react))))
	mux.HandleFunc("POST /login", tokens.login)
	handler := &crudserver.Handler{
		Path:       "/rows",
		Collection: rows,
		Server: &watchserver.Server{
			Access: watchserver.Access{Authenticator: tokens.authenticate},
			Trace:  logs.Failures(slog.Default()),
		},
		Scope: scope,
	}
	mux.Handle("/rows", handler)
	mux.Handle("/rows/", handler)
	return mux
}

// scope restricts each user to the rows of one tenant. An empty Namespace would select all rows.
func scope(_ context.Context, user watchserver.User) (listwatch.Selection, error) {
	if len(user.Groups) == 0 {
		return listwatch.Selection{}, listwatch.Cause{Message: "the user has no tenant"}
	}
	return listwatch.Selection{Namespace: user.Groups[0]}, nil
}
