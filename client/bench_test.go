package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
)

// BenchmarkWatch reads 10,000 events of 1 KiB from the history, as JSON over loopback.
// Server and client run in the same process.
func BenchmarkWatch(b *testing.B) {
	const events = 10_000
	plain := startServer(b, servertest.Options{Sockets: true})
	c := plain.things
	secure := servertest.Start(b, c, servertest.Options{Sockets: true, TLS: true})
	start, err := c.Create(b.Context(), []byte(`{"metadata":{"name":"start"}}`))
	if err != nil {
		b.Fatal(err)
	}
	padding := strings.Repeat("x", 800)
	for i := range events {
		if _, err := c.Create(b.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":"thing-%d"},"padding":%q}`, i, padding)); err != nil {
			b.Fatal(err)
		}
	}
	for _, bench := range []struct {
		name   string
		remote *Remote
	}{
		{"chunked", plain.remote(b, "chunked")},
		{"websocket", plain.remote(b, "websocket")},
		{"h2-tls", &Remote{URL: secure.URL("/things"), Network: secure.Network, Transports: secure.Clients("h2")}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			defer bench.remote.Close()
			batch := make([]listwatch.Event, 64)
			read := 0
			b.ReportAllocs()
			for b.Loop() {
				w, err := bench.remote.Watch(b.Context(), watchFrom(int(start.Version)))
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; n < events; {
					k, err := w.Next(b.Context(), batch)
					if err != nil {
						b.Fatal(err)
					}
					n += k
				}
				read += events
				w.Close()
			}
			b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
