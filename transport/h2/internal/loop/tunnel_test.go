package loop

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// switching is the response by which an HTTP/1.1 server accepts a WebSocket.
const switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n"

// connectFields returns the fields of an extended CONNECT for the given protocol, followed by the
// additional fields.
func connectFields(protocol string, more ...string) []string {
	return append([]string{
		":method", "CONNECT", ":protocol", protocol, ":scheme", "https", ":authority", "h", ":path", "/a?b=c",
		"sec-websocket-version", "13",
	}, more...)
}

// startTunnels starts a server that permits extended CONNECT, and a client that opens stream 1 with
// the given fields.
func startTunnels(t *testing.T, h http.HandlerFunc, fields []string, settings ...http2.Setting) *h2peer.Peer {
	t.Helper()
	f := start(t, h, false)
	f.loop.ExtendedConnect = true
	p := h2peer.Client(t, f.dial(t), settings...)
	p.Must(p.Respond(1, fields...)) // HEADERS without END_STREAM
	return p
}

// hijacked returns a handler that hijacks the connection and writes the response that accepts the
// WebSocket. The handler then passes the connection to conns.
func hijacked(conns chan<- net.Conn) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, err = io.WriteString(conn, switching)
		}
		if err != nil {
			panic(err)
		}
		conns <- conn
	}
}

// openTunnel returns the two ends of a tunnel.
func openTunnel(t *testing.T, settings ...http2.Setting) (*h2peer.Peer, net.Conn) {
	t.Helper()
	conns := make(chan net.Conn, 1)
	p := startTunnels(t, hijacked(conns), connectFields("websocket"), settings...)
	p.ReadUntil(h2peer.IsHeaders(1))
	synctest.Wait()
	return p, <-conns
}

func TestSettingsPermitExtendedConnectIfAsked(t *testing.T) {
	for _, want := range []bool{false, true} {
		list := (&settings{extendedConnect: want}).frame()
		if got := slices.Contains(list, http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1}); got != want {
			t.Errorf("ExtendedConnect is %v: got settings %v", want, list)
		}
	}
}

func TestHandlerSeesAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan *http.Request, 1)
		p := startTunnels(t, func(w http.ResponseWriter, r *http.Request) {
			requests <- r
			http.Error(w, "no", http.StatusForbidden)
		}, connectFields("websocket", "sec-websocket-key", "ignored", "origin", "https://h"))
		p.ReadUntil(h2peer.IsHeaders(1))
		r := <-requests
		if r.Method != http.MethodGet || r.RequestURI != "/a?b=c" || r.Host != "h" || r.ProtoMajor != 2 ||
			r.ContentLength != 0 {
			t.Errorf("got %s %s, host %s, %s, length %d", r.Method, r.RequestURI, r.Host, r.Proto, r.ContentLength)
		}
		for name, want := range map[string]string{
			"Upgrade": "websocket", "Connection": "Upgrade", "Sec-Websocket-Version": "13", "Origin": "https://h",
			"Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		} {
			if got := r.Header[name]; len(got) != 1 || got[0] != want {
				t.Errorf("got %s %q, want %s", name, got, want)
			}
		}
		if got := p.Fields[1][":status"]; got != "403" {
			t.Errorf("got status %s, want the handler's 403", got)
		}
	})
}

func TestTunnelCarriesBytesBothWays(t *testing.T) {
	for name, accept := range map[string]func(http.ResponseWriter) net.Conn{
		"response written to the connection": func(w http.ResponseWriter) net.Conn {
			conn, _, _ := http.NewResponseController(w).Hijack()
			for _, part := range []string{switching[:10], switching[10:] + "early "} {
				_, _ = io.WriteString(conn, part)
			}
			return conn
		},
		"WriteHeader before Hijack": func(w http.ResponseWriter) net.Conn {
			w.Header().Set("Sec-WebSocket-Protocol", "chat")
			w.Header().Set("Sec-WebSocket-Accept", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "early ")
			return conn
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startTunnels(t, func(w http.ResponseWriter, r *http.Request) {
					conn := accept(w)
					go func() { // the tunnel outlives the handler
						<-r.Context().Done()
						_, _ = io.Copy(conn, conn)
						conn.Close()
					}()
				}, connectFields("websocket"))
				p.ReadUntil(h2peer.IsHeaders(1))
				head := p.Fields[1]
				if head[":status"] != "200" || head["sec-websocket-protocol"] != "chat" {
					t.Errorf("got %v, want status 200 and the subprotocol", head)
				}
				for _, name := range []string{"sec-websocket-accept", "upgrade", "connection", "content-length"} {
					if _, ok := head[name]; ok {
						t.Errorf("the response has %s", name)
					}
				}
				for _, part := range []string{"one ", strings.Repeat("2", 10000), " three"} {
					p.Must(p.Framer.WriteData(1, false, []byte(part)))
				}
				p.Must(p.Framer.WriteData(1, true, nil))
				p.ReadUntil(h2peer.IsEnd(1))
				if got, want := string(p.Data[1]), "early one "+strings.Repeat("2", 10000)+" three"; got != want {
					t.Errorf("got %d bytes, %.30q; want %.30q", len(got), got, want)
				}
			})
		})
	}
}

func TestBadTunnelsAreRefused(t *testing.T) {
	list := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a list") }
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		fields  []string
		status  string        // the status of the response, if there must be one
		code    http2.ErrCode // otherwise, the code of RST_STREAM
	}{
		"unknown protocol":            {list, connectFields("webtransport"), "501", 0},
		"handler ignores the upgrade": {list, connectFields("websocket"), "501", 0},
		"protocol without CONNECT": {
			list, append([]string{":method", "GET"}, connectFields("websocket")[2:]...), "",
			http2.ErrCodeProtocol,
		},
		"empty path": {list, connectFields("websocket")[:8], "", http2.ErrCodeProtocol},
		"content length": {
			list, connectFields("websocket", "content-length", "0"), "",
			http2.ErrCodeProtocol,
		},
		"connection header": {
			list, connectFields("websocket", "upgrade", "websocket"), "",
			http2.ErrCodeProtocol,
		},
		"handler refuses by raw bytes": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}, connectFields("websocket"), "", http2.ErrCodeCancel},
		"endless raw response": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			for err := error(nil); err == nil; {
				_, err = conn.Write(make([]byte, 1000))
			}
		}, connectFields("websocket"), "", http2.ErrCodeCancel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startTunnels(t, test.handler, test.fields)
				if test.status != "" {
					if p.ReadUntil(h2peer.IsHeaders(1)); p.Fields[1][":status"] != test.status {
						t.Errorf("got %v, want status %s", p.Fields[1], test.status)
					}
					p.ReadUntil(h2peer.IsEnd(1))
					return
				}
				if got := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame).ErrCode; got != test.code {
					t.Errorf("got RST_STREAM with %v, want %v", got, test.code)
				}
			})
		})
	}
}

func TestUnannouncedTunnelIsAStreamError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
		p := h2peer.Client(t, f.dial(t))
		p.Must(p.Respond(1, connectFields("websocket")...))
		if got := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame).ErrCode; got != http2.ErrCodeProtocol {
			t.Errorf("got RST_STREAM with %v, want PROTOCOL_ERROR", got)
		}
		p.Must(p.Request(3, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/"))
		p.ReadUntil(h2peer.IsHeaders(3)) // the connection continues
	})
}

func TestHijackHappensOnceAndBeforeAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := make(chan error, 3)
		p := startTunnels(t, func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			w.WriteHeader(http.StatusTeapot)
			_, _, err := rc.Hijack()
			errs <- err
		}, connectFields("websocket"))
		if err := <-errs; err == nil {
			t.Error("a response that has begun was hijacked")
		}
		p.ReadUntil(h2peer.IsHeaders(1))
		p, conn := openTunnel(t)
		defer conn.Close()
		if _, _, err := (upgradeWriter{&conn.(*tunnel).x.response}).Hijack(); err != http.ErrHijacked {
			t.Errorf("got %v from the second Hijack, want http.ErrHijacked", err)
		}
		if _, err := conn.(*tunnel).x.response.Write([]byte("x")); err != http.ErrHijacked {
			t.Errorf("got %v from Write, want http.ErrHijacked", err)
		}
		_ = p
	})
}

func TestEndsOfTunnelsAreMapped(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(p *h2peer.Peer, conn net.Conn)
		read error // the error of the server's Read
	}{
		"client ends": {func(p *h2peer.Peer, _ net.Conn) { p.Must(p.Framer.WriteData(1, true, nil)) }, io.EOF},
		"client resets": {
			func(p *h2peer.Peer, _ net.Conn) { p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeCancel)) },
			errReset,
		},
		"client sends trailers": {func(p *h2peer.Peer, _ net.Conn) {
			p.Must(p.Request(1, "a", "b"))
			p.ReadUntil(h2peer.IsReset(1))
		}, errMalformed},
		"server closes": {func(p *h2peer.Peer, conn net.Conn) {
			conn.Close()
			p.ReadUntil(h2peer.IsEnd(1))
			if got := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame).ErrCode; got != http2.ErrCodeNo {
				t.Errorf("got RST_STREAM with %v, want NO_ERROR", got)
			}
		}, net.ErrClosed},
		"server aborts": {func(p *h2peer.Peer, conn net.Conn) {
			conn.(*tunnel).Abort()
			if got := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame).ErrCode; got != http2.ErrCodeCancel {
				t.Errorf("got RST_STREAM with %v, want CANCEL", got)
			}
		}, net.ErrClosed},
		"connection ends": {func(p *h2peer.Peer, _ net.Conn) { p.Conn.Close() }, errConn},
		"deadline passes": {func(_ *h2peer.Peer, conn net.Conn) {
			_ = conn.SetDeadline(time.Now().Add(time.Second))
		}, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, conn := openTunnel(t)
				defer conn.Close()
				test.end(p, conn)
				if n, err := conn.Read(make([]byte, 10)); n != 0 || err != test.read {
					t.Errorf("Read returned %d bytes and %v, want %v", n, err, test.read)
				}
				_, err := conn.Write([]byte("x"))
				if open := test.read == io.EOF || test.read == os.ErrDeadlineExceeded; (err == nil) != open {
					t.Errorf("Write returned %v", err)
				}
			})
		})
	}
}

func TestStalledTunnelIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, conn := openTunnel(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		begin := time.Now()
		_ = conn.SetWriteDeadline(begin.Add(time.Minute))
		go func() {
			time.Sleep(50 * time.Second)
			p.Must(p.Framer.WriteWindowUpdate(1, 1)) // one byte counts as progress
		}()
		_, err := conn.Write(make([]byte, 100))
		if d := time.Since(begin); !errors.Is(err, os.ErrDeadlineExceeded) || d != 110*time.Second {
			t.Errorf("Write returned %v after %v, want a deadline after 110s", err, d)
		}
		p.ReadUntil(h2peer.IsReset(1))
	})
}

func TestCloseResetsAStalledTunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, conn := openTunnel(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		written := make(chan error)
		go func() {
			_, err := conn.Write(make([]byte, 100))
			written <- err
		}()
		synctest.Wait()
		conn.Close()
		if err := <-written; err == nil {
			t.Error("the interrupted Write returned no error")
		}
		if got := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame).ErrCode; got != http2.ErrCodeCancel {
			t.Errorf("got RST_STREAM with %v, want CANCEL", got)
		}
	})
}

func TestPastDeadlineInterruptsAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := openTunnel(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		written := make(chan error)
		go func() {
			_, err := conn.Write(make([]byte, 100))
			written <- err
		}()
		synctest.Wait()
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
		if err := <-written; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
	})
}

func TestWritesInAStepKeepACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, conn := openTunnel(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		defer conn.Close()
		text := bytes.Repeat([]byte("x"), 100)
		returned := make(chan struct{})
		conn.(*tunnel).Go(func() {
			_, _ = conn.Write(text) // must not block
			clear(text)
			close(returned)
		})
		<-returned
		p.Must(p.Framer.WriteWindowUpdate(1, 1000))
		for len(p.Data[1]) < len(text) {
			p.Read()
		}
		if got := string(p.Data[1]); got != strings.Repeat("x", len(text)) {
			t.Errorf("got %q, want what was written", got)
		}
	})
}

// When a tunnel ends, the bytes that its handler has not read must be returned to the connection's
// window.
func TestEndedTunnelsReturnTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, conn := openTunnel(t)
		p.Must(p.Framer.WriteData(1, false, make([]byte, 16<<10)))
		synctest.Wait()
		conn.Close()
		c := conn.(*tunnel).st.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.recv.open + c.recv.consumed; got != c.recv.limit {
			t.Errorf("%d bytes of the connection's window are open or consumed, want all %d", got, c.recv.limit)
		}
	})
}
