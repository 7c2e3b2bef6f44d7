package h2

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

const oneEvent = `{"type":"ADDED","object":{"kind":"Thing"}}` + "\n"

func TestReceiverDistinguishesEndFromCut(t *testing.T) {
	tests := []struct {
		name    string
		end     func(p scriptedPeer)
		clean   bool
		code    listwatch.Code
		inEvent bool
	}{
		{"END_STREAM", func(p scriptedPeer) { p.Must(p.Framer.WriteData(1, true, nil)) }, true, 0, false},
		{
			"END_STREAM within an event",
			func(p scriptedPeer) { p.Must(p.Framer.WriteData(1, true, []byte(oneEvent[:9]))) }, false,
			listwatch.Corrupt, true,
		},
		{
			"RST_STREAM", func(p scriptedPeer) { p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeInternal)) }, false,
			listwatch.Unavailable, false,
		},
		{
			"RST_STREAM(NO_ERROR)", func(p scriptedPeer) { p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeNo)) }, false,
			listwatch.Unavailable, false,
		},
		{"RST_STREAM within an event", func(p scriptedPeer) {
			p.Must(p.Framer.WriteData(1, false, []byte(oneEvent[:9])))
			p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeInternal))
		}, false, listwatch.Unavailable, true},
		{"GOAWAY for an open stream", func(p scriptedPeer) {
			p.Must(p.Framer.WriteGoAway(0, http2.ErrCodeNo, nil))
		}, false, listwatch.Unavailable, false},
		{"connection closed", func(p scriptedPeer) { p.Conn.Close() }, false, listwatch.Unavailable, false},
		{
			"connection reset", func(p scriptedPeer) { p.Conn.(*memnet.Conn).Reset() }, false,
			listwatch.Unavailable, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				c := &Client{Network: transport.Network{Dial: l.Dial}}
				defer c.CloseIdleConnections()
				p, r := dialScripted(t, c, l)
				p.Must(p.Framer.WriteData(1, false, []byte(oneEvent)))
				if e, err := r.Receive(); err != nil || string(e.Object) != `{"kind":"Thing"}` {
					t.Fatalf("got %q, %v", e.Object, err)
				}
				tt.end(p)
				_, err := r.Receive()
				if tt.clean != (err == io.EOF) || !tt.clean && listwatch.CodeOf(err) != tt.code ||
					errors.Is(err, io.ErrUnexpectedEOF) != tt.inEvent {
					t.Errorf("got %v; want a clean end: %v, else code %v, within an event: %v", err, tt.clean, tt.code,
						tt.inEvent)
				}
				p.Conn.Close()
			})
		})
	}
}

func TestGoAwayMovesNewWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		c := &Client{Network: transport.Network{Dial: l.Dial}}
		p, r := dialScripted(t, c, l)
		p.Must(p.Framer.WriteGoAway(1, http2.ErrCodeNo, nil))
		synctest.Wait()
		_, another := dialScripted(t, c, l)
		// The open watch is not affected.
		p.Must(p.Framer.WriteData(1, true, []byte(oneEvent)))
		if _, err := r.Receive(); err != nil {
			t.Error(err)
		}
		if _, err := r.Receive(); err != io.EOF {
			t.Errorf("got %v, want %v", err, io.EOF)
		}
		another.Close()
	})
}

func TestTheStreamLimitOpensAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{Configure: func(srv *http.Server) {
			srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 3}
		}})
		c := &Client{Network: server.Network}
		for i := range 7 {
			// net/http shares a connection only after the goroutine that dialled it has resumed.
			synctest.Wait()
			r, err := c.Dial(t.Context(), &transport.Request{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			send(t, <-server.Streams, 0)
			if _, err := r.Receive(); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
			if got, want := len(server.Conns()), i/3+1; got != want {
				t.Errorf("got %d connections for %d watches, want %d", got, i+1, want)
			}
		}
	})
}

func TestFewBytesAreSentToAStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		r, err := new(Client).dialTo(t, server)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := <-server.Streams
		sent := 0
		for err == nil {
			if err = s.Sender.Send(encodeEvent(t, s, 16<<10)); err == nil {
				sent += 16 << 10
			}
		}
		if sent > 2*streamBuffer {
			t.Errorf("%d bytes were sent to a client that does not read, want %d at most", sent, 2*streamBuffer)
		}
	})
}

func TestAVanishedServerIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		r, err := new(Client).dialTo(t, server)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		start := time.Now()
		server.Conns()[0].Stall(true)
		if _, err := r.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable ||
			time.Since(start) > 2*transport.DefaultPingInterval {
			t.Errorf("got %v after %v, want code %v within %v", err, time.Since(start), listwatch.Unavailable,
				2*transport.DefaultPingInterval)
		}
	})
}

func TestAnHTTP1OnlyServerIsUnsupported(t *testing.T) {
	log.SetOutput(io.Discard) // net/http logs unexpected HTTP/1 responses
	defer log.SetOutput(os.Stderr)
	for name, secure := range map[string]bool{"in clear text": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			server := transporttest.StartServer(t, transporttest.ServerConfig{
				TLS: secure, Sockets: true, Handler: func(http.Handler) http.Handler { return http.NotFoundHandler() },
				Configure: func(srv *http.Server) {
					srv.Protocols = new(http.Protocols)
					srv.Protocols.SetHTTP1(true)
				},
			})
			_, err := new(Client).dialTo(t, server)
			if listwatch.CodeOf(err) != listwatch.Unsupported {
				t.Errorf("got %v, want code %v", err, listwatch.Unsupported)
			}
		})
	}
}

// If a server does not support ALPN, net/http uses HTTP/1.1.
func TestAServerWithoutALPNIsUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t, transporttest.ServerConfig{
			TLS: true, Handler: func(http.Handler) http.Handler { return http.NotFoundHandler() },
			Configure: func(srv *http.Server) {
				srv.Protocols = new(http.Protocols)
				srv.Protocols.SetHTTP1(true)
			},
			ServerTLS: func(c *tls.Config) {
				c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
					return &tls.Config{Certificates: c.Certificates}, nil
				}
			},
		})
		if _, err := new(Client).dialTo(t, server); listwatch.CodeOf(err) != listwatch.Unsupported {
			t.Errorf("got %v, want code %v", err, listwatch.Unsupported)
		}
	})
}

func (c *Client) dialTo(t *testing.T, server *transporttest.TestServer) (transport.Receiver, error) {
	t.Helper()
	c.Network = server.Network
	t.Cleanup(c.CloseIdleConnections)
	return c.Dial(t.Context(), &transport.Request{URL: server.URL})
}
