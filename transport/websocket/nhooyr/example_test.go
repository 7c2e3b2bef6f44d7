package nhooyr_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
	"github.com/listwatch/listwatch/watchserver"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
}

// The server serves watches over WebSocket only. Both ends use the library nhooyr.
func Example() {
	ctx := context.Background()
	flags := memory.New[flag]()
	if _, err := flags.Create(ctx, flag{listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(&watchserver.Server{
		Source:     flags,
		Transports: []transport.Server{&nhooyr.Server{}},
		Access:     watchserver.Access{Origins: []string{"https://*.example.com"}},
	})
	defer server.Close()

	u, err := url.Parse(server.URL + "?watch=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &nhooyr.Client{}
	watch, err := client.Dial(ctx, &transport.Request{URL: u})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	received, err := watch.Receive()
	if err != nil {
		fmt.Println(err)
		return
	}
	event, err := received.Event()
	fmt.Println(event.Type, event.Object.Key, err)
	// Output: ADDED dark-mode <nil>
}
