package chunked

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

const getRequest = "GET /things?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n"

// dialRaw writes request to a new connection to server.
func dialRaw(t *testing.T, server *transporttest.TestServer, request string) *memnet.Conn {
	t.Helper()
	c, err := server.Network.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c.(*memnet.Conn)
}

func sendEvent(t *testing.T, s *transporttest.Stream, n int) {
	t.Helper()
	frames, err := transporttest.Frames(s.Encoder, transporttest.Event(n, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sender.Send(frames); err != nil {
		t.Error(err)
	}
}

// readHeader reads the status line and the headers.
func readHeader(t *testing.T, r *bufio.Reader) (string, textproto.MIMEHeader) {
	t.Helper()
	text := textproto.NewReader(r)
	status, err := text.ReadLine()
	if err != nil {
		t.Fatal(err)
	}
	h, err := text.ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	return status, h
}

// These types imitate the ResponseWriters of different kinds of middleware.
type (
	hijackable struct{ http.ResponseWriter } // forwards Hijack
	unwrapping struct{ http.ResponseWriter } // implements only Unwrap
	flushing   struct{ http.ResponseWriter } // implements only Flush
	failing    struct{ unwrapping }          // its Hijack returns an error
)

func (h hijackable) Unwrap() http.ResponseWriter { return h.ResponseWriter }
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.ResponseWriter.(http.Hijacker).Hijack()
}
func (u unwrapping) Unwrap() http.ResponseWriter { return u.ResponseWriter }
func (f flushing) Flush()                        { f.ResponseWriter.(http.Flusher).Flush() }
func (f failing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

func wrapIn(wrap func(http.ResponseWriter) http.ResponseWriter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(wrap(w), r) })
	}
}

func TestHijacksOnlyWhenSafe(t *testing.T) {
	tests := []struct {
		name    string
		request string
		server  Server
		wrap    func(http.ResponseWriter) http.ResponseWriter
		want    bool
	}{
		{name: "a plain GET", request: getRequest, want: true},
		{
			name:    "a GET with an upgrade to h2c",
			request: "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", want: true,
		},
		{name: "disabled", request: getRequest, server: Server{DisableHijack: true}},
		{name: "HTTP/1.0", request: "GET / HTTP/1.0\r\n\r\n"},
		{name: "a POST", request: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
		{name: "a body", request: "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"},
		{
			name:    "a body without a length",
			request: "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		},
		{name: "Expect: 100-continue", request: "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"},
		{
			name: "hijackable middleware", request: getRequest,
			wrap: func(w http.ResponseWriter) http.ResponseWriter { return hijackable{w} },
		},
		{
			name: "compressing middleware", request: getRequest,
			wrap: func(w http.ResponseWriter) http.ResponseWriter {
				w.Header().Set("Content-Encoding", "gzip")
				return hijackable{w}
			},
		},
		{
			name: "middleware without Hijack", request: getRequest,
			wrap: func(w http.ResponseWriter) http.ResponseWriter { return unwrapping{w} },
		},
		{
			name: "middleware whose Hijack fails", request: getRequest,
			wrap: func(w http.ResponseWriter) http.ResponseWriter { return failing{unwrapping{w}} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := transporttest.ServerConfig{Server: tt.server}
				if tt.wrap != nil {
					config.Handler = wrapIn(tt.wrap)
				}
				server := transporttest.StartServer(t, config)
				c := dialRaw(t, server, tt.request)
				s := <-server.Streams
				if status, _ := readHeader(t, bufio.NewReader(c)); !strings.HasSuffix(status, "200 OK") {
					t.Errorf("got status line %q, want status 200", status)
				}
				if _, hijacked := s.Sender.(*stream); hijacked != tt.want {
					t.Errorf("got hijacked %v, want %v", hijacked, tt.want)
				}
				s.Sender.Close(transport.Finished)
			})
		})
	}
}

func TestLeanResponseBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t,
			transporttest.ServerConfig{Server: Server{}, Handler: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h := w.Header()
					h.Set("X-Request-Id", "7")
					h.Set("X-Split", "a\r\nEvil: yes\r\n\r\n")
					h["bad name"] = []string{"x"}
					h.Set("Content-Length", "5")
					h.Set("Connection", "keep-alive")
					next.ServeHTTP(w, r)
				})
			}})
		c := dialRaw(t, server, getRequest)
		s := <-server.Streams
		sendEvent(t, s, 1)
		s.Sender.Close(transport.Finished)
		r := bufio.NewReader(c)
		status, h := readHeader(t, r)
		want := map[string]string{
			"Transfer-Encoding": "chunked", "Connection": "close", "X-Request-Id": "7", "X-Split": "a  Evil: yes",
			"Evil":         "",
			"Content-Type": "application/json", "Content-Length": "", "Date": "Sat, 01 Jan 2000 00:00:00 GMT",
		}
		for name, value := range want {
			if got := h.Get(name); got != value {
				t.Errorf("got %s: %q, want %q", name, got, value)
			}
		}
		if status != "HTTP/1.1 200 OK" || len(h["Bad name"])+len(h["bad name"]) > 0 {
			t.Errorf("got %q with %v", status, h)
		}
		body, err := io.ReadAll(r)
		event := `{"type":"ADDED","object":` + string(transporttest.Event(1, 0).Object.Data) + "}\n"
		if want := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(event), event); string(body) != want || err != nil {
			t.Errorf("got %q, %v; want %q and a clean end", body, err, want)
		}
	})
}

func TestStandardResponseBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t, transporttest.ServerConfig{Server: Server{DisableHijack: true}})
		c := dialRaw(t, server, getRequest)
		s := <-server.Streams
		sendEvent(t, s, 1)
		s.Sender.Close(transport.Finished)
		r := bufio.NewReader(c)
		_, h := readHeader(t, r)
		if h.Get("Transfer-Encoding") != "chunked" || h.Get("Content-Length") != "" {
			t.Errorf("got headers %v, want chunked without Content-Length", h)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		body, _ := io.ReadAll(r)
		if !strings.HasSuffix(string(body), "\r\n0\r\n\r\n") {
			t.Errorf("got %q, want it to end with the last chunk", body)
		}
	})
}

func TestHTTP10BodyEndsWithTheConnection(t *testing.T) {
	for _, end := range []transport.End{transport.Finished, transport.Abort} {
		synctest.Test(t, func(t *testing.T) {
			server := transporttest.StartServer(t, transporttest.ServerConfig{Server: Server{}})
			c := dialRaw(t, server, "GET / HTTP/1.0\r\n\r\n")
			r := bufio.NewReader(c)
			s := <-server.Streams
			_, h := readHeader(t, r)
			if len(h["Transfer-Encoding"])+len(h["Content-Length"]) > 0 {
				t.Errorf("got headers %v, want neither Transfer-Encoding nor Content-Length", h)
			}
			sendEvent(t, s, 1)
			if line, err := r.ReadString('\n'); !strings.HasPrefix(line, `{"type":"ADDED"`) || err != nil {
				t.Errorf("got %q, %v", line, err)
			}
			s.Sender.Close(end)
			_, err := r.ReadByte()
			if clean := err == io.EOF; clean != (end == transport.Finished) {
				t.Errorf("end %d: got %v; want io.EOF only for a clean end", end, err)
			}
		})
	}
}

func TestInputFromTheClientEndsALeanStream(t *testing.T) {
	ends := map[string]func(c *memnet.Conn){
		"a byte":     func(c *memnet.Conn) { io.WriteString(c, "x") },
		"half close": func(c *memnet.Conn) { c.CloseWrite() },
		"close":      func(c *memnet.Conn) { c.Close() },
		"reset":      func(c *memnet.Conn) { c.Reset() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := transporttest.StartServer(t, transporttest.ServerConfig{Server: Server{}})
				c := dialRaw(t, server, getRequest)
				s := <-server.Streams
				select {
				case <-s.Done():
					t.Fatal("Done is closed before the end")
				default:
				}
				readHeader(t, bufio.NewReader(c))
				start := time.Now()
				end(c)
				<-s.Done()
				if d := time.Since(start); d > 0 {
					t.Errorf("Done was closed after %v, want at once", d)
				}
				frames, _ := transporttest.Frames(s.Encoder, transporttest.Event(1, 0))
				if err := s.Sender.Send(frames); listwatch.CodeOf(err) != listwatch.Unavailable {
					t.Errorf("Send after the end: got %v, want code %v", err, listwatch.Unavailable)
				}
			})
		})
	}
}

func TestAFinishedConnectionLingersBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t, transporttest.ServerConfig{Server: Server{}})
		c := dialRaw(t, server, getRequest)
		s := <-server.Streams
		s.Sender.Close(transport.GoingAway)
		// Bytes from the client must not cause a reset, which would destroy the last chunk.
		if _, err := io.WriteString(c, "GET /more HTTP/1.1\r\n\r\n"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if body, err := io.ReadAll(c); !strings.HasSuffix(string(body), "0\r\n\r\n") || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
		start := time.Now()
		for {
			if _, err := c.Write([]byte("x")); errors.Is(err, syscall.ECONNRESET) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(start); d > 2*lingerTime {
			t.Errorf("the connection was closed after %v, want %v at most", d, 2*lingerTime)
		}
	})
}

func TestASlowReaderIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		server := transporttest.StartServer(t,
			transporttest.ServerConfig{Server: Server{}, Options: transport.Options{WriteTimeout: timeout}})
		c := dialRaw(t, server, getRequest)
		s := <-server.Streams
		read := make(chan struct{})
		go func() {
			defer close(read)
			buf := make([]byte, 4<<10)
			for {
				time.Sleep(timeout / 2)
				if _, err := c.Read(buf); err != nil {
					return
				}
			}
		}()
		event := transporttest.Event(1, 1<<20)
		frames, _ := transporttest.Frames(s.Encoder, event)
		start := time.Now()
		if err := s.Sender.Send(frames); err != nil || time.Since(start) < timeout {
			t.Errorf("Send: got %v after %v, want nil", err, time.Since(start))
		}
		s.Sender.Close(transport.Abort)
		<-read
	})
}

func TestAbortWithoutTheConnectionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := transporttest.StartServer(t, transporttest.ServerConfig{
			Server: Server{}, Handler: wrapIn(func(w http.ResponseWriter) http.ResponseWriter { return flushing{w} }),
		})
		c := &Client{Network: server.Network}
		r, err := c.Dial(t.Context(), &transport.Request{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		s := <-server.Streams
		received := make(chan struct{})
		// The call of Close below closes Done. Then the handler also calls Close(Abort) and
		// panics because of the same error, so Receive fails.
		go func() {
			defer close(received)
			if _, err := r.Receive(); listwatch.CodeOf(err) != listwatch.Unavailable {
				t.Errorf("got error %v, want code %v", err, listwatch.Unavailable)
			}
		}()
		synctest.Wait()
		if err := s.Sender.Close(transport.Abort); err == nil {
			t.Error("got nil, want an error because the connection is out of reach")
		}
		r.Close()
		<-received
	})
}

func TestClaims(t *testing.T) {
	tests := []struct {
		major, minor        int
		upgrade, connection []string
		want                bool
	}{
		{1, 1, nil, nil, true},
		{2, 0, nil, nil, false},
		{1, 1, []string{"websocket"}, []string{"Upgrade"}, false},
		{1, 1, []string{"h2c, WebSocket"}, []string{"keep-alive, upgrade"}, false},
		{1, 1, []string{"h2c"}, []string{"Upgrade"}, true},
		// These are not upgrades: Connection must name the header Upgrade, and HTTP/1.0 has no
		// upgrades.
		{1, 1, []string{"websocket"}, nil, true},
		{1, 1, []string{"websocket"}, []string{"keep-alive"}, true},
		{1, 0, []string{"websocket"}, []string{"Upgrade"}, true},
	}
	for _, tt := range tests {
		r := &http.Request{ProtoMajor: tt.major, ProtoMinor: tt.minor, Header: http.Header{
			"Upgrade": slices.Clone(tt.upgrade), "Connection": slices.Clone(tt.connection),
		}}
		if got := (Server{}).Claims(r); got != tt.want {
			t.Errorf("HTTP/%d.%d, Upgrade %q, Connection %q: got %v, want %v", tt.major, tt.minor, tt.upgrade,
				tt.connection, got, tt.want)
		}
	}
}
