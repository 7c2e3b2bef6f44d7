package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// A testServer serves a collection in memory.
type testServer struct {
	*servertest.Server
	things *store.Collection
}

func startServer(t testing.TB, o servertest.Options) *testServer {
	t.Helper()
	things := newThings(t)
	return &testServer{servertest.Start(t, things, o), things}
}

// newThings returns a collection that retains its complete history.
func newThings(t testing.TB) *store.Collection {
	t.Helper()
	db := memory.Open(memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1}})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	return things
}

// remote returns a Remote of s over the named transports.
func (s *testServer) remote(t testing.TB, names ...string) *Remote {
	r := &Remote{URL: s.URL("/things"), Network: s.Network, Transports: s.Clients(names...)}
	t.Cleanup(func() { r.Close() })
	return r
}

// put creates or replaces a thing.
func (s *testServer) put(t testing.TB, name string, n int) *listwatch.Object {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"n":%d}`, name, n)
	o, err := s.things.Create(context.Background(), data)
	if errors.Is(err, listwatch.AlreadyExists) {
		o, err = s.things.Replace(context.Background(), listwatch.Key{Name: name}, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// readEvents returns the next n events.
func readEvents(t testing.TB, w listwatch.Watcher, n int) []listwatch.Event {
	t.Helper()
	events := make([]listwatch.Event, n)
	for got := 0; got < n; {
		k, err := w.Next(t.Context(), events[got:])
		if err != nil {
			t.Fatalf("Next after %d of %d events: %v", got, n, err)
		}
		got += k
	}
	return events
}

// forEachTransport runs test for each transport, each in a separate synctest bubble.
func forEachTransport(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range servertest.TransportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, name) })
		})
	}
}

// transportOf returns the name of the transport of a request.
func transportOf(r *http.Request) string {
	switch {
	case r.Header.Get("Upgrade") != "":
		return "websocket"
	case r.ProtoMajor == 2:
		return "h2"
	}
	return "chunked"
}
