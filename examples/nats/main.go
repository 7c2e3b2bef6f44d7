// Command nats serves the bucket flags of NATS' key-value store.
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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/examples/nats/flags"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

func main() {
	url := flag.String("url", "", "URL of a NATS server; if empty, one is started in this process, at 127.0.0.1:4222")
	addr := flag.String("addr", "127.0.0.1:8080", "address to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *addr); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, addr string) error {
	if url == "" {
		dir, err := os.MkdirTemp("", "nats")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s, err := startServer(dir, 4222)
		if err != nil {
			return err
		}
		defer s.WaitForShutdown()
		defer s.Shutdown()
		url = s.ClientURL()
	}
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "flags"}); err != nil {
		return err
	}
	spec := store.CollectionSpec{APIVersion: "example.com/v1", Kind: "Flag", Namespaced: true}
	options := watchcache.Options{History: listwatch.Retention{Age: time.Hour}}
	source, err := flags.New(ctx, js, "flags", spec.Description(""), options)
	if err != nil {
		return err
	}
	handler := &crudserver.Handler{
		Path: "/flags", Collection: store.New(spec, source),
		Server: &watchserver.Server{Trace: logs.Failures(slog.Default())},
	}
	http.Handle("/flags", handler)
	http.Handle("/flags/", handler)
	go func() { log.Fatal(http.ListenAndServe(addr, nil)) }()
	return source.Run(ctx)
}

// startServer starts a NATS server with its data in dir. The port -1 means any free port.
func startServer(dir string, port int) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
		MaxPayload: 8 << 20, // the largest object
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the NATS server is not ready after 10 seconds")
	}
	return s, nil
}
