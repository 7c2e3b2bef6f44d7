// Command sqlite serves the table settings of a SQLite database.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	_ "modernc.org/sqlite"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/examples/sqlite/settings"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

func main() {
	file := flag.String("file", "settings.db", "file of the database")
	addr := flag.String("addr", "127.0.0.1:8080", "address to serve at")
	install := flag.Bool("install", false, "make the table watchable first, or start over if it was")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *addr, *install); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file, addr string, install bool) error {
	db, err := sql.Open("sqlite", dataSource(file))
	if err != nil {
		return err
	}
	defer db.Close()
	if install {
		if _, err := db.ExecContext(ctx, settings.Schema); err != nil {
			return err
		}
	}
	source, err := settings.New(ctx, db, watchcache.Options{History: listwatch.Retention{Age: time.Hour}})
	if err != nil {
		return err
	}
	http.Handle("/settings", &watchserver.Server{Source: source, Trace: logs.Failures(slog.Default())})
	go func() { log.Fatal(http.ListenAndServe(addr, nil)) }()
	return source.Run(ctx)
}

// dataSource returns the name of a database for sql.Open. With a write-ahead log, readers and the
// writer do not wait for each other. synchronous(FULL) flushes each commit, so that no watcher sees
// a change that a power failure undoes; every program that writes must set it.
func dataSource(file string) string {
	return "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"
}
