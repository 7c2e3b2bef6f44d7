// Command postgres serves the table settings of a PostgreSQL database.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

func main() {
	database := flag.String("database", "postgres://localhost/postgres", "URL of the database")
	addr := flag.String("addr", "127.0.0.1:8080", "address to serve at")
	install := flag.Bool("install", false, "make the table watchable first, or start over if it was")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *database, *addr, *install); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database, addr string, install bool) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if install {
		if _, err := pool.Exec(ctx, settings.Schema); err != nil {
			return err
		}
	}
	source, err := settings.New(ctx, pool, watchcache.Options{History: listwatch.Retention{Age: time.Hour}})
	if err != nil {
		return err
	}
	handler := &crudserver.Handler{
		Path: "/settings", Collection: source.Collection(),
		Server: &watchserver.Server{Trace: logs.Failures(slog.Default())},
	}
	http.Handle("/settings", handler)
	http.Handle("/settings/", handler)
	go func() { log.Fatal(http.ListenAndServe(addr, nil)) }()
	return source.Run(ctx)
}
