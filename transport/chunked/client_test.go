package chunked

import (
	"io"
	"log"
	"net/http/httptrace"
	"net/url"
	"os"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

func TestEachWatchHasItsOwnConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t, transporttest.ServerConfig{Server: Server{}})
		c := &Client{Network: server.Network}
		for range 3 {
			r, err := c.Dial(t.Context(), &transport.Request{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		if n := len(server.Conns()); n != 3 {
			t.Errorf("got %d connections for 3 watches", n)
		}
	})
}

func TestAnHTTP2OnlyServerIsUnsupported(t *testing.T) {
	log.SetOutput(io.Discard) // net/http logs bytes that arrive before a request
	defer log.SetOutput(os.Stderr)
	for name, greeting := range map[string]string{
		// gRPC servers send a SETTINGS frame first.
		"sends SETTINGS first": "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"waits for the client": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				defer l.Close()
				go func() {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					io.WriteString(c, greeting)
					c.Read(make([]byte, 4096))
					io.WriteString(c,
						"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01") // GOAWAY(PROTOCOL_ERROR)
				}()
				// The greeting arrives before the request is written. If both happened at once,
				// net/http could report that it cannot write to the connection.
				ctx := httptrace.WithClientTrace(t.Context(),
					&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { synctest.Wait() }})
				c := &Client{Network: transport.Network{Dial: l.Dial}}
				_, err := c.Dial(ctx, &transport.Request{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}})
				if listwatch.CodeOf(err) != listwatch.Unsupported {
					t.Errorf("got %v, want code %v", err, listwatch.Unsupported)
				}
			})
		})
	}
}
