package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/spf13/pflag"
)

// A Connection contains the flags that describe how to reach a server.
type Connection struct {
	Server        string
	Transport     string
	Framing       string
	Token         string
	CA, Cert, Key string
	SkipVerify    bool
	Compress      bool
	// Dial opens connections. If nil, TCP is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// AddFlags adds the flags that set the fields of c.
func (c *Connection) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Server, "server", "http://127.0.0.1:8080", "`URL` of the server, unless the argument is a URL")
	f.StringVar(&c.Token, "token", "", "bearer `token`")
	f.StringVar(&c.CA, "ca", "", "PEM `file` with the CAs to trust; if empty, the CAs of the system")
	f.StringVar(&c.Cert, "cert", "", "PEM `file` with a client certificate")
	f.StringVar(&c.Key, "key", "", "PEM `file` with the key of --cert")
	f.BoolVar(&c.Compress, "compress", false, "request compression: gzip or zstd, or permessage-deflate over WebSocket")
	f.BoolVar(&c.SkipVerify, "insecure-skip-verify", false, "do not verify the certificate of the server")
}

var framings = map[string]framing.Framer{
	"json": framing.JSON{}, "cbor": framing.CBORSeq{}, "sse": framing.SSE{}, "seq": framing.JSONSeq{},
	"prefixed": framing.LengthPrefixed{},
}

// Remote returns a client for the collection at url.
func (c *Connection) Remote(url string) (*client.Remote, error) {
	config, err := c.TLSConfig()
	if err != nil {
		return nil, err
	}
	r := &client.Remote{URL: url, Network: transport.Network{TLS: config, Dial: c.Dial}, Compress: c.Compress}
	if r.Transports, err = c.Transports("--transport", r.Network); err != nil {
		return nil, err
	}
	if c.Framing != "" {
		f, ok := framings[c.Framing]
		if !ok {
			return nil, cli.Usagef("--framing %q: must be json, cbor, sse, seq or prefixed", c.Framing)
		}
		r.Framings = []framing.Framer{f}
	}
	if c.Token != "" {
		r.Header = func(context.Context, bool) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + c.Token}}, nil
		}
	}
	return r, nil
}

// Transports returns the selected transport, or nil to let client.Remote choose. Errors name the
// flag.
func (c *Connection) Transports(flag string, n transport.Network) ([]transport.Client, error) {
	switch c.Transport {
	case "", "auto":
		return nil, nil
	case "chunked":
		return []transport.Client{&chunked.Client{Network: n}}, nil
	case "h2":
		return []transport.Client{&h2.Client{Network: n}}, nil
	case "websocket":
		return []transport.Client{&websocket.Client{Network: n}}, nil
	}
	return nil, cli.Usagef("%s %q: must be auto, chunked, h2 or websocket", flag, c.Transport)
}

// TLSConfig returns the TLS configuration for the connection. An error names the invalid
// flag.
func (c *Connection) TLSConfig() (*tls.Config, error) {
	if (c.Cert == "") != (c.Key == "") {
		return nil, cli.Usagef("--cert and --key must be set together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.SkipVerify}
	if c.CA != "" {
		var err error
		if config.RootCAs, err = ReadCertificates("--ca", c.CA); err != nil {
			return nil, err
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("--cert %s, --key %s: %w", c.Cert, c.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// WithAdvice adds advice to common errors.
func WithAdvice(err error) error { return Advise(err, "--server", "--ca") }

// Advise is like [WithAdvice], for a server and a CA that other flags name.
func Advise(err error, server, ca string) error {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf(
			"%w; no server is running there: start one with \"listwatch serve\", or name another with %s", err, server)
	case untrusted:
		return fmt.Errorf("%w; pass its CA with %s", err, ca)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"),
		strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return fmt.Errorf("%w; try http:// instead of https://", err)
	}
	return err
}

// ReadCertificates reads a PEM file of CA certificates. Errors name the flag.
func ReadCertificates(flag, file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s %s: the file contains no certificate in PEM format", flag, file)
	}
	return pool, nil
}
