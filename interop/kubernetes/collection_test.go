//go:build !race

package kubernetes

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/typed"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Our client uses the http.Client of client-go, whose RoundTrippers add credentials and
// certificates. Therefore our client must send all requests through them.
func TestCollectionWritesToKubernetes(t *testing.T) {
	server := apiserver.Start(t)
	maps := schema.GroupVersionResource{Group: relayGroup, Version: "v1", Resource: "configmaps"}
	createCRD(t, server.Config(), maps, "ConfigMap")
	root := server.URL + "/apis/" + relayGroup + "/v1"
	for _, path := range []string{"/configmaps", "/namespaces/default/configmaps"} {
		t.Run(path, func(t *testing.T) {
			c, err := rest.HTTPClientFor(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			remote := &client.Remote{URL: root + path, HTTPClient: c}
			defer remote.Close()
			collectiontest.Run(t, remote, relayGroup+"/v1", "default")
		})
	}
	for name, transports := range map[string]func(*http.Client) []transport.Client{
		"http": func(*http.Client) []transport.Client { return nil },
		"websocket": func(c *http.Client) []transport.Client {
			return []transport.Client{&websocket.Client{HTTPClient: c}}
		},
	} {
		t.Run("watch over "+name, func(t *testing.T) {
			c, err := rest.HTTPClientFor(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			var opened atomic.Value
			trace := &client.Trace{Opened: func(name string, _ listwatch.Version) { opened.Store(name) }}
			remote := &client.Remote{URL: root + "/configmaps", HTTPClient: c, Transports: transports(c), Trace: trace}
			remote.Header = func(context.Context, bool) (http.Header, error) {
				// Kubernetes refuses a WebSocket without an origin.
				return http.Header{"Origin": {server.URL}}, nil
			}
			defer remote.Close()
			testWatchOfWrites(t, remote)
			if got := opened.Load(); got != name {
				t.Errorf("the watch uses %v, want %s", got, name)
			}
		})
	}
}

// In a resource with the subresource status, a write of the whole object cannot change the status.
func TestStatusIsStoredOrRefused(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *comparedServer{
		"ours":       startOurs,
		"Kubernetes": startKubernetes,
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			remote := &client.Remote{URL: server.url + "/apis/demo.example.com/v1/widgets", HTTPClient: server.client}
			defer remote.Close()
			collectiontest.RunStatus(t, remote, "n")
		})
	}
}

// testWatchOfWrites watches the collection of remote while a Collection writes to it.
func testWatchOfWrites(t *testing.T, remote *client.Remote) {
	page, err := remote.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := remote.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: page.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	maps := typed.Collection[collectiontest.ConfigMap]{Store: remote}
	m, err := maps.Create(t.Context(), collectiontest.ConfigMap{
		APIVersion: relayGroup + "/v1", Kind: "ConfigMap",
		Metadata: listwatch.Metadata{GenerateName: "watched-", Namespace: "default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var event [1]listwatch.Event
	if _, err := w.Next(t.Context(), event[:]); err != nil || event[0].Type != listwatch.Added ||
		event[0].Version != m.Version() {
		t.Errorf("got %v, error %v, want ADDED at version %d", event[0], err, m.Version())
	}
}
