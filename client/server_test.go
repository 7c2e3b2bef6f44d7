package client

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
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
	return testkit.Put(t, s.things, data)
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
