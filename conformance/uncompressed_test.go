package conformance_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
)

// If the requested compression is not available, the server must not refuse the request (RFC 9110,
// section 12.5.3; RFC 7692, section 5.1). It must send the events uncompressed, without a header
// that names a compression.
func TestUnavailableCompressionIsIgnored(t *testing.T) {
	things, object := newCollectionWithObject(t)
	servers := startServers(t, things)
	for _, c := range selectCells(cellsWhere(cell.isUncompressed)) {
		t.Run(c.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			s := servers[serverKey{c.server.name, c.tls}]
			client := c.client.newClient(transport.Network{TLS: s.ClientTLS})
			if c, ok := client.(interface{ CloseIdleConnections() }); ok {
				defer c.CloseIdleConnections()
			}
			r := &transport.Request{
				URL: s.WatchURL("/things", ""), Header: make(http.Header), Framings: []framing.Framer{c.framing},
			}
			c.addTo(r)
			receiver, err := client.Dial(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			defer receiver.Close()
			if err := c.verifyResponse(receiver.Header()); err != nil {
				t.Error(err)
			}
			e, err := receiver.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if e.Type != "ADDED" {
				t.Errorf("got type %s, want ADDED", e.Type)
			}
			content, err := newObjectContent(object.Data)
			if err != nil {
				t.Fatal(err)
			}
			if same, err := content.hasValue(e.Object); err != nil || !same {
				t.Errorf("got %s, %v; want %s", e.Object, err, object.Data)
			}
		})
	}
}

func newCollectionWithObject(t *testing.T) (*store.Collection, *listwatch.Object) {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	body := newWriter("only", 0, things, newWriteLog()).spec(largeSize)
	object, err := things.Create(t.Context(),
		append(append([]byte(`{"metadata":{"name":"only"},"spec":`), body...), '}'))
	if err != nil {
		t.Fatal(err)
	}
	return things, object
}
