package h2

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

const writeTimeout = 5 * time.Second

func startServer(t *testing.T, config transporttest.ServerConfig) *transporttest.TestServer {
	t.Helper()
	config.Server = Server{}
	config.Options.WriteTimeout = writeTimeout
	inner := config.Configure
	config.Configure = func(srv *http.Server) {
		if inner != nil {
			inner(srv)
		}
		configure(srv, config.Options)
	}
	return transporttest.StartServer(t, config)
}

func encodeEvent(t *testing.T, s *transporttest.Stream, size int) [][]byte {
	t.Helper()
	return testkit.Must(transporttest.Frames(s.Encoder, transporttest.Event(1, size)))(t)
}

func send(t *testing.T, s *transporttest.Stream, size int) {
	t.Helper()
	if err := s.Sender.Send(encodeEvent(t, s, size)); err != nil {
		t.Errorf("send: %v", err)
	}
}

// openStreams opens n streams, numbered 1, 3, 5 and so on, and reads their response headers.
func openStreams(p scriptedPeer, server *transporttest.TestServer, n int) []*transporttest.Stream {
	p.Helper()
	streams := make([]*transporttest.Stream, n)
	for i := range streams {
		p.requestWatch(uint32(2*i + 1))
		streams[i] = <-server.Streams
		p.ReadUntil(h2peer.IsHeaders(uint32(2*i + 1)))
	}
	return streams
}

func TestResponseHeadersAreValidHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Transfer-Encoding", "chunked")
				w.Header().Set("Keep-Alive", "timeout=5")
				next.ServeHTTP(w, r)
			})
		}})
		p := newScriptedClient(t, server)
		s := openStreams(p, server, 1)[0]
		fields := p.Fields[1]
		if fields[":status"] != "200" || fields["content-type"] != "application/json" {
			t.Errorf("got headers %v, want status 200 and type application/json", fields)
		}
		for _, name := range []string{"transfer-encoding", "connection", "keep-alive", "upgrade", "content-length"} {
			if v, ok := fields[name]; ok {
				t.Errorf("got header %s: %s, want none", name, v)
			}
		}
		send(t, s, 0)
		if f := p.readStreamFrame(); !h2peer.Is[*http2.DataFrame](f) {
			t.Errorf("got %v, want DATA", f)
		}
		s.Sender.Close(transport.Finished)
		p.ReadUntil(h2peer.IsEnd(1))
	})
}

// A server announces the size of the header list that it wants. Larger lists reach the handler,
// which refuses them with a Status, up to twice that size.
func TestHeaderLimitIsAnnounced(t *testing.T) {
	tests := []struct {
		config    Config
		announced uint32
		statuses  map[int]string // by the length of a field
	}{
		{Config{}, 64 << 10, map[int]string{63 << 10: "200", 128 << 10: "200", 133 << 10: "431"}},
		{Config{HeaderBytes: 8 << 10}, 8 << 10, map[int]string{7 << 10: "200", 16 << 10: "200", 21 << 10: "431"}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			configure := func(srv *http.Server) { Configure(srv, tt.config) }
			handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			server := testhttp.Start(t, handler, testhttp.Options{Configure: configure})
			conn, err := server.Dial(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			p := h2peer.Client(t, conn)
			settings := p.ReadUntil(h2peer.Is[*http2.SettingsFrame]).(*http2.SettingsFrame)
			if got, _ := settings.Value(http2.SettingMaxHeaderListSize); got != tt.announced {
				t.Errorf("the server announces %d bytes, want %d", got, tt.announced)
			}
			id := uint32(1)
			for size, want := range tt.statuses {
				p.Must(p.Framer.WriteHeaders(http2.HeadersFrameParam{
					StreamID: id, EndStream: true,
					BlockFragment: h2peer.HeaderBlock(":method", "GET", ":scheme", "http", ":authority", "h",
						":path", "/"),
				}))
				rest := h2peer.HeaderBlock("x", strings.Repeat("x", size))
				for part := range slices.Chunk(rest, 16<<10) {
					rest = rest[len(part):]
					p.Must(p.Framer.WriteContinuation(id, len(rest) == 0, part))
				}
				p.ReadUntil(h2peer.IsHeaders(id))
				if got := p.Fields[id][":status"]; got != want {
					t.Errorf("a field of %d bytes: got status %s, want %s", size, got, want)
				}
				id += 2
			}
		})
	}
}

func TestAResetEndsOnlyItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		p := newScriptedClient(t, server)
		streams := openStreams(p, server, 2)
		start := time.Now()
		p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeCancel))
		<-streams[0].Done()
		if d := time.Since(start); d > 0 {
			t.Errorf("the stream ended after %v, want at once", d)
		}
		if err := streams[0].Sender.Send(encodeEvent(t, streams[0],
			0)); listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("Send on a stream that was reset: got %v, want code Unavailable", err)
		}
		send(t, streams[1], 0)
		streams[1].Sender.Close(transport.Finished)
		p.ReadUntil(h2peer.IsEnd(3))
	})
}

func TestAbortResetsOnlyItsStream(t *testing.T) {
	wrappers := map[string]func(http.Handler) http.Handler{
		"by a deadline": nil,
		"by a panic": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(flushing{w}, r) })
		},
	}
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := startServer(t, transporttest.ServerConfig{Handler: wrap})
				p := newScriptedClient(t, server)
				streams := openStreams(p, server, 2)
				if err := streams[0].Sender.Close(transport.Abort); (err != nil) != (wrap != nil) {
					t.Errorf("Close(Abort): got %v, want an error: %v", err, wrap != nil)
				}
				p.ReadUntil(h2peer.IsReset(1))
				send(t, streams[1], 0)
				streams[1].Sender.Close(transport.Finished)
				p.ReadUntil(h2peer.IsEnd(3))
			})
		})
	}
}

// A flushing writer implements Flush, but not Unwrap.
type flushing struct{ http.ResponseWriter }

func (f flushing) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

func TestAnEmptyWindowBlocksOnlyItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		p := newScriptedClient(t, server)
		p.Must(p.Framer.WriteWindowUpdate(0, 1<<30))
		streams := openStreams(p, server, 2)
		start := time.Now()
		stalled := make(chan error)
		go func() { stalled <- streams[0].Sender.Send(encodeEvent(t, streams[0], 100<<10)) }()
		p.readData(1, 65535)
		want := 0
		for range 20 {
			send(t, streams[1], 8<<10)
			want += len(encodeEvent(t, streams[1], 8<<10)[0])
			p.readData(3, want)
			p.Must(p.Framer.WriteWindowUpdate(3, 16<<10))
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("the other stream waited %v", d)
		}
		if err := <-stalled; listwatch.CodeOf(err) != listwatch.Unavailable || time.Since(start) != writeTimeout {
			t.Errorf("the stalled stream ended with %v after %v, want %v", err, time.Since(start), writeTimeout)
		}
		p.ReadUntil(h2peer.IsReset(1))
		send(t, streams[1], 1<<10)
		streams[1].Sender.Close(transport.Finished)
		p.ReadUntil(h2peer.IsEnd(3))
	})
}

func TestATinyWindowIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		p := newScriptedClient(t, server, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		s := openStreams(p, server, 1)[0]
		sent := make(chan error)
		go func() { sent <- s.Sender.Send(encodeEvent(t, s, 200)) }()
		want := len(encodeEvent(t, s, 200)[0])
		for len(p.Data[1]) < want {
			p.Must(p.Framer.WriteWindowUpdate(1, 1))
			if f, ok := p.readStreamFrame().(*http2.DataFrame); !ok || len(f.Data()) != 1 {
				t.Fatalf("got %v, want DATA of one byte", f)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		s.Sender.Close(transport.Abort)
	})
}

func TestAShrunkWindowIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		p := newScriptedClient(t, server, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		s := openStreams(p, server, 1)[0]
		sent := make(chan error, 1)
		go func() { sent <- s.Sender.Send(encodeEvent(t, s, 2000)) }()
		p.readData(1, 1000)
		// The settings make the window negative, -900 bytes (rfc9113#section-6.9.2).
		p.Must(p.Framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
		p.Must(p.Framer.WriteWindowUpdate(1, 900))
		synctest.Wait()
		select {
		case err := <-sent:
			t.Fatalf("Send returned %v before the window allowed it", err)
		default:
		}
		p.Must(p.Framer.WriteWindowUpdate(1, 5000))
		p.readData(1, len(encodeEvent(t, s, 2000)[0]))
		if err := <-sent; err != nil {
			t.Error(err)
		}
		s.Sender.Close(transport.Abort)
	})
}

func TestShutdownLetsStreamsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var srv *http.Server
		server := startServer(t, transporttest.ServerConfig{Configure: func(s *http.Server) { srv = s }})
		p := newScriptedClient(t, server)
		s := openStreams(p, server, 1)[0]
		down := make(chan error)
		go func() { down <- srv.Shutdown(context.WithoutCancel(t.Context())) }()
		f := p.ReadUntil(h2peer.Is[*http2.GoAwayFrame]).(*http2.GoAwayFrame)
		if f.ErrCode != http2.ErrCodeNo || f.LastStreamID < 1 {
			t.Errorf("got %v, want GOAWAY with NO_ERROR and the open stream", f)
		}
		send(t, s, 0)
		s.Sender.Close(transport.GoingAway)
		p.ReadUntil(h2peer.IsEnd(1))
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestAVanishedClientIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, transporttest.ServerConfig{})
		p := newScriptedClient(t, server)
		s := openStreams(p, server, 1)[0]
		start := time.Now()
		server.Conns()[0].Stall(true)
		<-s.Done()
		if d := time.Since(start); d > 2*transport.DefaultPingInterval {
			t.Errorf("the stream ended after %v, want %v at most", d, 2*transport.DefaultPingInterval)
		}
	})
}

func TestConfigureSetsOnlyZeroFields(t *testing.T) {
	srv := &http.Server{}
	Configure(srv, Config{WriteTimeout: time.Second, PingInterval: -1})
	if p := srv.Protocols; !p.HTTP1() || !p.HTTP2() || !p.UnencryptedHTTP2() {
		t.Errorf("got protocols %v", p)
	}
	if c := srv.HTTP2; c.WriteByteTimeout != time.Second || c.SendPingTimeout != 0 || c.MaxConcurrentStreams == 0 {
		t.Errorf("got %+v", c)
	}
	if srv.WriteTimeout != 0 || srv.ReadHeaderTimeout == 0 {
		t.Errorf("got %+v", srv)
	}
	protocols, config := new(http.Protocols), &http.HTTP2Config{MaxConcurrentStreams: 7}
	own := &http.Server{Protocols: protocols, HTTP2: config, ReadHeaderTimeout: time.Second}
	Configure(own, Config{})
	if own.Protocols != protocols || own.HTTP2.MaxConcurrentStreams != 7 || own.ReadHeaderTimeout != time.Second {
		t.Errorf("got %+v, want the fields of the caller unchanged", own)
	}
	if config.SendPingTimeout != 0 || own.HTTP2.SendPingTimeout != transport.DefaultPingInterval {
		t.Errorf("got %+v from %+v", own.HTTP2, config)
	}
}

func TestClaims(t *testing.T) {
	for r, want := range map[*http.Request]bool{
		{ProtoMajor: 2, Method: http.MethodGet}:     true,
		{ProtoMajor: 3, Method: http.MethodGet}:     true,
		{ProtoMajor: 1, Method: http.MethodGet}:     false,
		{ProtoMajor: 2, Method: http.MethodConnect}: false,
	} {
		if got := (Server{}).Claims(r); got != want {
			t.Errorf("%s over HTTP/%d: got %v, want %v", r.Method, r.ProtoMajor, got, want)
		}
	}
}
