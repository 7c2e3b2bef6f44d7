package relay_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// BenchmarkDelivery measures a write and its way to every watcher, who all read in process: at the origin, behind a relay in the same
// process, behind one that follows the origin over HTTP/1.1 and loopback, and behind two such. With a thousand watchers what is reported is a
// delivery; with one it is the whole way, of which the relay's share is what the others have more than the origin.
func BenchmarkDelivery(b *testing.B) {
	for _, watchers := range []int{1, 1000} {
		for _, way := range []string{"origin", "relay", "relay-over-http", "two-relays-over-http"} {
			b.Run(fmt.Sprintf("watchers=%d/%s", watchers, way), func(b *testing.B) { benchmarkDelivery(b, way, watchers) })
		}
	}
}

func benchmarkDelivery(b *testing.B, way string, watchers int) {
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		b.Fatal(err)
	}
	source := listwatch.Source(things)
	switch way {
	case "relay":
		source = ready(b, open(b, source, relay.Options{}))
	case "relay-over-http":
		source = overHTTP(b, source)
	case "two-relays-over-http":
		source = overHTTP(b, overHTTP(b, source))
	}
	all := make([]listwatch.Watcher, watchers)
	for i := range all {
		all[i] = watch(b, source, fromNow)
	}
	pad := make([]byte, 1024)
	for i := range pad {
		pad[i] = 'x'
	}
	key := listwatch.Key{Name: "a"}
	write := func(i int) {
		data := fmt.Appendf(nil, `{"metadata":{"name":"a"},"n":%d,"pad":%q}`, i, pad)
		_, err := things.Replace(context.Background(), key, data)
		if listwatch.CodeOf(err) == listwatch.NotFound {
			_, err = things.Create(context.Background(), data)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	dst := make([]listwatch.Event, 1)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		write(i)
		for _, w := range all {
			if _, err := w.Next(context.Background(), dst); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*watchers), "ns/delivery")
}

// overHTTP returns a relay of s, which it follows over HTTP/1.1.
func overHTTP(b *testing.B, s listwatch.Source) listwatch.Source {
	server := httptest.NewServer(&watchserver.Server{Source: s})
	remote := &client.Remote{URL: server.URL + "/things"}
	b.Cleanup(func() {
		remote.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return ready(b, open(b, remote, relay.Options{}))
}

// BenchmarkRead measures reads of the newest state, which ask the origin, and of any, beside the same at the origin, over HTTP/1.1.
func BenchmarkRead(b *testing.B) {
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		if _, err := things.Create(b.Context(), fmt.Appendf(nil, `{"metadata":{"name":"a-%d"}}`, i)); err != nil {
			b.Fatal(err)
		}
	}
	relayed := overHTTP(b, things)
	for name, source := range map[string]listwatch.Source{"origin": things, "relay-over-http": relayed} {
		for what, start := range map[string]listwatch.Start{"newest": listwatch.Newest, "any": listwatch.Any} {
			b.Run(what+"/"+name, func(b *testing.B) {
				for b.Loop() {
					list(b, source, listwatch.Query{Start: start})
				}
			})
		}
	}
}
