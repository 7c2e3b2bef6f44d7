package relay_test

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchcache"
)

// Another program may change several keys at one version. If these changes arrive together, the
// relay handles them as one batch.
func TestChangesOfOneVersionStayTogether(t *testing.T) {
	for _, transport := range []string{"chunked", "h2", "websocket"} {
		for _, f := range []framing.Framer{framing.JSON{}, framing.CBORSeq{}} {
			t.Run(fmt.Sprintf("%s/%T", transport, f), func(t *testing.T) { changesOfOneVersion(t, transport, f) })
		}
	}
}

func changesOfOneVersion(t *testing.T, transport string, f framing.Framer) {
	cache := watchcache.New(listwatch.Description{Kind: "Thing", APIVersion: "v1"}, watchcache.Options{})
	if err := cache.Replace(nil, 1); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, cache, servertest.Options{})
	upstream := &client.Remote{
		URL: s.URL("/things"), Network: s.Network, Transports: s.Clients(transport), Framings: []framing.Framer{f},
	}
	defer upstream.Close()
	r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1, CheckInterval: -1}))
	w := mustWatch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: 1})
	for v := listwatch.Version(2); v < 50; v++ {
		var changes []watchcache.Change
		for i := range 3 {
			data := fmt.Appendf(nil, `{"metadata":{"name":"thing-%d","resourceVersion":"%d"}}`, i, v)
			o, err := listwatch.ParseObject(data)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, watchcache.Change{Version: v, Object: o})
		}
		if err := cache.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		for _, e := range readEvents(t, w, len(changes)) {
			if e.Version != v {
				t.Fatalf("got an event of version %d, want %d", e.Version, v)
			}
		}
	}
}
