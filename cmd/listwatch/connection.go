package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/spf13/pflag"
)

// connection says how to reach a server: flags that get and watch share.
type connection struct {
	server        string
	transport     string
	framing       string
	token         string
	ca, cert, key string
	skipVerify    bool
	compress      bool
}

func (c *connection) addFlags(f *pflag.FlagSet) {
	f.StringVar(&c.server, "server", "http://127.0.0.1:8080", "the server, where the argument is no URL")
	f.StringVar(&c.token, "token", "", "bearer token")
	f.StringVar(&c.ca, "ca", "", "file with the CAs to trust, in PEM; empty: the system's")
	f.StringVar(&c.cert, "cert", "", "file with a client certificate, in PEM")
	f.StringVar(&c.key, "key", "", "file with the key of --cert, in PEM")
	f.BoolVar(&c.compress, "compress", false, "ask the server to compress: zstd or gzip; permessage-deflate over WebSocket")
	f.BoolVar(&c.skipVerify, "insecure-skip-verify", false, "believe any certificate of the server")
}

var framings = map[string]framing.Framer{
	"json": framing.JSON{}, "cbor": framing.CBORSeq{}, "sse": framing.SSE{}, "seq": framing.JSONSeq{}, "prefixed": framing.LengthPrefixed{},
}

// remote returns the Source at url.
func (c *connection) remote(url string) (*client.Remote, error) {
	config, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	r := &client.Remote{URL: url, Network: transport.Network{TLS: config}, Compress: c.compress}
	if r.Transports, err = c.transports(r.Network); err != nil {
		return nil, err
	}
	if c.framing != "" {
		f, ok := framings[c.framing]
		if !ok {
			return nil, usagef("--framing %q: want json, cbor, sse, seq or prefixed", c.framing)
		}
		r.Framings = []framing.Framer{f}
	}
	if c.token != "" {
		r.Header = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + c.token}}, nil
		}
	}
	return r, nil
}

// transports returns the one to watch over; nil: the Remote chooses.
func (c *connection) transports(n transport.Network) ([]transport.Client, error) {
	switch c.transport {
	case "", "auto":
		return nil, nil
	case "chunked":
		return []transport.Client{&chunked.Client{Network: n}}, nil
	case "h2":
		return []transport.Client{&h2.Client{Network: n}}, nil
	case "websocket":
		return []transport.Client{&websocket.Client{Network: n}}, nil
	}
	return nil, usagef("--transport %q: want auto, chunked, h2 or websocket", c.transport)
}

func (c *connection) tlsConfig() (*tls.Config, error) {
	if (c.cert == "") != (c.key == "") {
		return nil, usagef("--cert and --key go together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.skipVerify}
	if c.ca != "" {
		var err error
		if config.RootCAs, err = readCertificates("--ca", c.ca); err != nil {
			return nil, err
		}
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("--cert %s, --key %s: %w", c.cert, c.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// withAdvice says what to do about the errors that beginners meet.
func withAdvice(err error) error {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w; nothing listens there: start a server with \"listwatch serve\", or name another with --server", err)
	case untrusted:
		return fmt.Errorf("%w; name the CA with --ca", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"),
		strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return fmt.Errorf("%w; try http:// instead of https://", err)
	}
	return err
}
