package loop

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// A Server serves the HTTP/2 connections of one http.Server. The zero value is ready to use.
type Server struct {
	// ExtendedConnect permits WebSocket over HTTP/2 (RFC 8441). A handler sees the request that an
	// HTTP/1.1 client would have sent, and hijacks the connection.
	ExtendedConnect bool

	mu sync.Mutex
	// Guarded by mu.
	conns        map[*conn]struct{}
	shuttingDown bool
}

// Register makes hs use s for HTTP/2. hs.Protocols determines whether hs serves HTTP/2 over TLS,
// with prior knowledge in clear text, or both.
func (s *Server) Register(hs *http.Server) {
	if hs.TLSNextProto == nil {
		hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	// Both keys are needed. Without "h2", net/http replaces both functions by its own. Without the
	// other one, it serves no HTTP/2 in clear text.
	hs.TLSNextProto["h2"] = s.serve
	hs.TLSNextProto["unencrypted_http2"] = s.serve
	hs.RegisterOnShutdown(s.shutdown)
}

// serve serves a connection of net/http until it ends. In clear text tc does not use TLS; it only
// wraps the connection, whose preface net/http has already read.
func (s *Server) serve(hs *http.Server, tc *tls.Conn, h http.Handler) {
	ctx := context.Background()
	if b, ok := h.(interface{ BaseContext() context.Context }); ok {
		ctx = b.BaseContext()
	}
	if u, ok := tc.NetConn().(interface{ UnencryptedNetConn() net.Conn }); ok {
		newConn(s, hs, u.UnencryptedNetConn(), nil, h).serve(ctx)
		return
	}
	state := tc.ConnectionState()
	newConn(s, hs, tc, &state, h).serve(ctx)
}

// add adds c and reports whether the http.Server is shutting down.
func (s *Server) add(c *conn) (shuttingDown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*conn]struct{})
	}
	s.conns[c] = struct{}{}
	return s.shuttingDown
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// shutdown makes all connections refuse new streams. Each connection ends with its last stream.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.shuttingDown = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		c.goAway()
		c.mu.Unlock()
	}
}

// Most of these constants are the defaults for fields of http.HTTP2Config that are zero, as in
// net/http. The last three are timeouts for which http.HTTP2Config has no field.
const (
	defaultStreams     = 250
	defaultFrameSize   = 16 << 10 // the smallest that RFC 9113, section 4.2, allows
	defaultWindow      = 1 << 20
	defaultTable       = 4096
	defaultPingTimeout = 15 * time.Second
	prefaceTimeout     = 10 * time.Second // or http.Server.ReadHeaderTimeout, if that is longer
	settingsTimeout    = 15 * time.Second // or http.Server.ReadHeaderTimeout, if that is longer
	stallTimeout       = 5 * time.Minute  // or the idle timeout, if the server has one
)

// firstWindow is the window of a stream for the body of its request. It grows up to
// settings.streamWindow as long as the handler reads as fast as the client sends.
const firstWindow = 64<<10 - 1

// settings are the limits and timeouts of a connection. A duration of zero means no limit.
type settings struct {
	streams                         uint32
	frameSize                       uint32
	connWindow, streamWindow        int32
	headerBytes                     int
	decoderTable, encoderTable      uint32
	pingInterval, pingTimeout       time.Duration
	writeTimeout                    time.Duration // the limit for a write that makes no progress
	prefaceTimeout                  time.Duration // the limit for the client's first bytes
	settingsTimeout                 time.Duration // the limit for the acknowledgment of SETTINGS
	idleTimeout                     time.Duration
	stallTimeout                    time.Duration // the limit for a window to stay empty
	requestTimeout, responseTimeout time.Duration // http.Server.ReadTimeout and WriteTimeout
	allowProhibitedCiphers          bool
	countError                      func(string)
	extendedConnect                 bool
}

func settingsOf(s *Server, hs *http.Server) *settings {
	var c http.HTTP2Config
	if hs.HTTP2 != nil {
		c = *hs.HTTP2
	}
	idle := max(0, cmp.Or(hs.IdleTimeout, hs.ReadTimeout))
	return &settings{
		streams:      uint32(positive(c.MaxConcurrentStreams, defaultStreams)),
		frameSize:    uint32(max(positive(c.MaxReadFrameSize, defaultFrameSize), defaultFrameSize)),
		connWindow:   int32(max(positive(c.MaxReceiveBufferPerConnection, defaultWindow), firstWindow)),
		streamWindow: int32(max(positive(c.MaxReceiveBufferPerStream, defaultWindow), firstWindow)),
		headerBytes:  positive(hs.MaxHeaderBytes, http.DefaultMaxHeaderBytes) + 4096,
		decoderTable: uint32(positive(c.MaxDecoderHeaderTableSize, defaultTable)),
		encoderTable: uint32(positive(c.MaxEncoderHeaderTableSize, defaultTable)),
		pingInterval: max(0, c.SendPingTimeout), pingTimeout: cmp.Or(max(0, c.PingTimeout), defaultPingTimeout),
		writeTimeout: max(0, c.WriteByteTimeout), idleTimeout: idle, stallTimeout: cmp.Or(idle, stallTimeout),
		requestTimeout: max(0, hs.ReadTimeout), responseTimeout: max(0, hs.WriteTimeout),
		prefaceTimeout: max(prefaceTimeout, hs.ReadHeaderTimeout), settingsTimeout: max(settingsTimeout, hs.ReadHeaderTimeout),
		allowProhibitedCiphers: c.PermitProhibitedCipherSuites, countError: c.CountError, extendedConnect: s.ExtendedConnect,
	}
}

func positive(v, byDefault int) int {
	if v <= 0 {
		return byDefault
	}
	return v
}

// frame returns the SETTINGS that announce s.
func (s *settings) frame() []http2.Setting {
	list := []http2.Setting{
		{ID: http2.SettingMaxFrameSize, Val: s.frameSize},
		{ID: http2.SettingMaxConcurrentStreams, Val: s.streams},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(s.headerBytes)},
		{ID: http2.SettingHeaderTableSize, Val: s.decoderTable},
		{ID: http2.SettingInitialWindowSize, Val: firstWindow},
	}
	if s.extendedConnect {
		list = append(list, http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
	}
	return list
}

// acceptsCipher reports whether the handshake fulfills RFC 9113, section 9.2.
func (s *settings) acceptsCipher(state *tls.ConnectionState) bool {
	if state == nil || s.allowProhibitedCiphers || state.Version > tls.VersionTLS12 {
		return true
	}
	switch state.CipherSuite {
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return state.Version == tls.VersionTLS12
	}
	return false
}
