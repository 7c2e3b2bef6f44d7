package servers

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/centrifugal/centrifuge"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

const centrifugeChannel = "events"

// A centrifugeServer is the tutorial of centrifuge, with a subscription by the server. The initial
// state is the data of the reply to the client's connect command.
type centrifugeServer struct{ node *centrifuge.Node }

func startCentrifuge(l net.Listener, state []event.Object) (Server, error) {
	// The reply with the initial state counts against the limit of a client's queue, which is
	// 1 MB by default.
	node, err := centrifuge.New(centrifuge.Config{ClientQueueMaxSize: 32 << 20})
	if err != nil {
		return nil, err
	}
	items := []byte("[")
	for i, o := range state {
		if i > 0 {
			items = append(items, ',')
		}
		items = append(items, o.Added()...)
	}
	items = append(items, ']')
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{
			Data:          items,
			Credentials:   &centrifuge.Credentials{},
			Subscriptions: map[string]centrifuge.SubscribeOptions{centrifugeChannel: {}},
			// Send no pings, because the clients do not answer them. No other server requires
			// answers.
			PingPongConfig: &centrifuge.PingPongConfig{PingInterval: -1},
		}, nil
	})
	if err := node.Run(); err != nil {
		return nil, fmt.Errorf("centrifuge: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{}))
	serveHTTP(l, mux)
	return &centrifugeServer{node}, nil
}

func (s *centrifugeServer) Publish(o event.Object) {
	if _, err := s.node.Publish(centrifugeChannel, o.Modified()); err != nil {
		panic(err) // the broker is in memory
	}
}
