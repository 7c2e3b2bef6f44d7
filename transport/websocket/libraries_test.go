package websocket_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
)

// An implementation is a server and a client of this package or of a library.
type implementation struct {
	name   string
	server transport.Server
	client func(transport.Network) transport.Client
}

var implementations = []implementation{
	{
		"native", &websocket.Server{},
		func(n transport.Network) transport.Client { return &websocket.Client{Network: n} },
	},
	{"gorilla", &gorilla.Server{}, func(n transport.Network) transport.Client { return &gorilla.Client{Network: n} }},
	{"nhooyr", &nhooyr.Server{}, func(n transport.Network) transport.Client { return &nhooyr.Client{Network: n} }},
}

func TestEventsAreIdenticalOnAllImplementations(t *testing.T) {
	for _, f := range []framing.Framer{framing.JSON{}, framing.CBORSeq{}} {
		for _, codings := range [][]string{nil, transport.Codings()} {
			var want [][]byte
			for _, server := range implementations {
				for _, client := range implementations {
					got := exchange(t, server, client, f, codings)
					if want == nil {
						want = got
					}
					if !bytes.Equal(bytes.Join(got, []byte("\n")), bytes.Join(want, []byte("\n"))) {
						t.Errorf("%s, codings %q: server %s and client %s yield other bytes than the native ones",
							f.MediaType(), codings, server.name, client.name)
					}
				}
			}
		}
	}
}

// exchange sends events of many sizes and returns what the client has decoded.
func exchange(t *testing.T, server, client implementation, f framing.Framer, codings []string) (got [][]byte) {
	t.Helper()
	s := transporttest.StartServer(t, transporttest.ServerConfig{Server: server.server, Sockets: true})
	r, err := client.client(s.Network).Dial(t.Context(),
		&transport.Request{URL: s.URL, Framings: []framing.Framer{f}, Codings: codings})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stream := <-s.Streams
	sent := make(chan struct{})
	defer func() {
		<-sent // closing the connection may fail a Send whose event has arrived
		stream.Sender.Close(transport.Abort)
	}()
	sizes := []int{0, 1, 60, 125, 126, 1 << 10, 0xFFFF, 0x10000, 3 << 16}
	go func() { // ends after the last event
		defer close(sent)
		for i, size := range sizes {
			data := fmt.Sprintf(`{"metadata":{"name":"o%d"},"text":"ü€𝄞 %s"}`, i, strings.Repeat("x", size))
			frame, err := stream.Encoder.Frame(framing.WatchEvent{Type: "MODIFIED", Object: []byte(data)})
			if err == nil {
				err = stream.Sender.Send([][]byte{frame})
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for range sizes {
		e, err := r.Receive()
		if err != nil {
			t.Fatalf("server %s, client %s: %v", server.name, client.name, err)
		}
		got = append(got, append([]byte(e.Type+" "), e.Object...))
	}
	return got
}
