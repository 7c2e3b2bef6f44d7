package relay_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
}

// A relay follows an origin over HTTP, and a client watches the relay. The origin serves
// only one watch, however many clients the relay has.
func Example() {
	ctx := context.Background()
	flags := memory.New[flag]()
	origin := httptest.NewServer(&watchserver.Server{Source: flags})
	defer origin.Close()

	upstream := &client.Remote{URL: origin.URL + "/flags"}
	r := relay.Open(upstream, relay.Options{})
	server := httptest.NewServer(&watchserver.Server{Source: r})
	defer server.Close()
	defer upstream.Close()
	defer r.Close()

	remote := &client.Remote{URL: server.URL + "/flags"}
	defer remote.Close()
	w, err := remote.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	written, err := flags.Create(ctx, flag{listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type, e.Object.Key, e.Version.String() == written.ResourceVersion)
		break
	}
	// Output: ADDED dark-mode true
}

// Health reports whether the relay keeps up with its upstream.
func ExampleRelay_Health() {
	ctx := context.Background()
	flags := memory.New[flag]()
	r := relay.Open(flags, relay.Options{})
	defer r.Close()
	if _, err := flags.Create(ctx, flag{listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
		return
	}
	w, err := r.Watch(ctx, listwatch.Query{Start: listwatch.StartAny})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	var events [1]listwatch.Event
	if _, err := w.Next(ctx, events[:]); err != nil { // waits until the relay has the write
		fmt.Println(err)
		return
	}
	health := r.Health()
	fmt.Println("ready:", health.Ready)
	fmt.Println("objects:", health.Objects)
	fmt.Println("up to date:", health.Version == events[0].Version && health.Version == health.UpstreamVersion)
	// Output:
	// ready: true
	// objects: 1
	// up to date: true
}
