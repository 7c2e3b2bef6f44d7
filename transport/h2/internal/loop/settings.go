package loop

import (
	"cmp"
	"crypto/tls"
	"math"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// initialWindow is the size of all windows before SETTINGS and WINDOW_UPDATE (RFC 9113, section
// 6.9.2).
const initialWindow = 64<<10 - 1

// maxWindow is the largest flow-control window (RFC 9113, section 6.9.1).
const maxWindow = math.MaxInt32

// firstWindow is the window of a stream for the body of its request. It grows up to
// settings.streamWindow as long as the handler reads as fast as the client sends.
const firstWindow = 64<<10 - 1

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

// settings are the limits and timeouts of a connection.
type settings struct {
	// Most of these limits are announced by the SETTINGS.
	streams                    uint32
	frameSize                  uint32
	connWindow, streamWindow   int32
	headerBytes                int    // of a header list: more is refused
	announcedHeaderBytes       uint32 // of a header list: clients should not send more
	decoderTable, encoderTable uint32

	// These are timeouts. Zero means no limit.
	pingInterval, pingTimeout       time.Duration
	writeTimeout                    time.Duration // the limit for a write that makes no progress
	prefaceTimeout                  time.Duration // the limit for the client's first bytes
	settingsTimeout                 time.Duration // the limit for the acknowledgment of SETTINGS
	idleTimeout                     time.Duration
	stallTimeout                    time.Duration // the limit for a window to stay empty
	requestTimeout, responseTimeout time.Duration // http.Server.ReadTimeout and WriteTimeout

	allowProhibitedCiphers bool
	countError             func(string)
	extendedConnect        bool
}

// Options configure what http.Server and http.HTTP2Config have no field for.
type Options struct {
	// ExtendedConnect permits WebSocket over HTTP/2 (RFC 8441). A handler sees the request that an
	// HTTP/1.1 client would have sent, and hijacks the connection.
	ExtendedConnect bool
	// HeaderBytes is the size of a request's header list that the SETTINGS announce as the limit
	// (RFC 9113, section 6.5.2). If zero or above http.Server.MaxHeaderBytes, that is announced.
	// Handlers can refuse the larger lists that http.Server.MaxHeaderBytes permits.
	HeaderBytes int
}

func settingsOf(hs *http.Server, o Options) *settings {
	var c http.HTTP2Config
	if hs.HTTP2 != nil {
		c = *hs.HTTP2
	}
	headerBytes := positive(hs.MaxHeaderBytes, http.DefaultMaxHeaderBytes)
	idle := max(0, cmp.Or(hs.IdleTimeout, hs.ReadTimeout))
	return &settings{
		streams:      uint32(positive(c.MaxConcurrentStreams, defaultStreams)),
		frameSize:    uint32(max(positive(c.MaxReadFrameSize, defaultFrameSize), defaultFrameSize)),
		connWindow:   int32(max(positive(c.MaxReceiveBufferPerConnection, defaultWindow), firstWindow)),
		streamWindow: int32(max(positive(c.MaxReceiveBufferPerStream, defaultWindow), firstWindow)),
		headerBytes:  headerBytes + 4096, // as net/http permits for HTTP/1.1
		decoderTable: uint32(positive(c.MaxDecoderHeaderTableSize, defaultTable)),
		encoderTable: uint32(positive(c.MaxEncoderHeaderTableSize, defaultTable)),

		announcedHeaderBytes: uint32(min(positive(o.HeaderBytes, headerBytes), headerBytes)),

		pingInterval:    max(0, c.SendPingTimeout),
		pingTimeout:     cmp.Or(max(0, c.PingTimeout), defaultPingTimeout),
		writeTimeout:    max(0, c.WriteByteTimeout),
		prefaceTimeout:  max(prefaceTimeout, hs.ReadHeaderTimeout),
		settingsTimeout: max(settingsTimeout, hs.ReadHeaderTimeout),
		idleTimeout:     idle,
		stallTimeout:    cmp.Or(idle, stallTimeout),
		requestTimeout:  max(0, hs.ReadTimeout),
		responseTimeout: max(0, hs.WriteTimeout),

		allowProhibitedCiphers: c.PermitProhibitedCipherSuites,
		countError:             c.CountError,
		extendedConnect:        o.ExtendedConnect,
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
		{ID: http2.SettingMaxHeaderListSize, Val: s.announcedHeaderBytes},
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
