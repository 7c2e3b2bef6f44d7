package relay_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// BenchmarkDelivery measures the time from a write until all watchers have read it. The
// watchers read from the origin, from a relay in the same process, from a relay that
// follows the origin over HTTP/1.1 and loopback, or from a chain of two such relays. With
// 1000 watchers it reports the time per delivery. With one watcher, the difference from the
// origin is the latency of the relays.
func BenchmarkDelivery(b *testing.B) {
	for _, watchers := range []int{1, 1000} {
		for _, path := range []string{"origin", "relay", "relay-over-http", "two-relays-over-http"} {
			b.Run(fmt.Sprintf("watchers=%d/%s", watchers, path),
				func(b *testing.B) { benchmarkDelivery(b, path, watchers) })
		}
	}
}

func benchmarkDelivery(b *testing.B, path string, watchers int) {
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		b.Fatal(err)
	}
	source := listwatch.Source(things)
	switch path {
	case "relay":
		source = awaitReady(b, openRelay(b, source, relay.Options{}))
	case "relay-over-http":
		source = overHTTP(b, source)
	case "two-relays-over-http":
		source = overHTTP(b, overHTTP(b, source))
	}
	all := make([]listwatch.Watcher, watchers)
	for i := range all {
		all[i] = testkit.Watch(b, source, fromNow)
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

// overHTTP returns a relay that follows s over HTTP/1.1.
func overHTTP(b *testing.B, s listwatch.Source) listwatch.Source {
	server := servertest.Start(b, s, servertest.Options{Sockets: true})
	remote := &client.Remote{URL: server.URL("/things")}
	b.Cleanup(func() { remote.Close() })
	return awaitReady(b, openRelay(b, remote, relay.Options{}))
}

// BenchmarkRead measures lists at a relay and compares them with lists at its upstream. For a
// list of the newest state, the relay first requests the version of its upstream, which it follows
// over HTTP/1.1. A list of any state needs no such request.
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
		for read, start := range map[string]listwatch.Start{
			"newest": listwatch.StartNewest,
			"any":    listwatch.StartAny,
		} {
			b.Run(read+"/"+name, func(b *testing.B) {
				for b.Loop() {
					mustList(b, source, listwatch.Query{Start: start})
				}
			})
		}
	}
}
