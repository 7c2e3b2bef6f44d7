package clusterrelay

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/transport"
)

// A proxy passes requests on to the API server.
type proxy struct {
	carrier *carrier
	forward http.Handler
}

// newProxy returns a proxy for the API server at base. answered is called before the response to a
// request is sent. The response is nil if there is none.
func newProxy(base *url.URL, c *carrier, answered func(*call, *http.Response), errors *log.Logger) *proxy {
	return &proxy{c, httpbody.Forward(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy has dropped what it cannot parse
			p.SetXForwarded()
			if c := callIn(p.In.Context()).sender.certified; c != nil {
				c.assert(p.Out.Header)
			}
		},
		// FlushInterval passes each part of a response on at once, as Incremental (RFC 10036)
		// requires.
		Transport: c, FlushInterval: -1, ErrorLog: errors,
		ModifyResponse: func(r *http.Response) error {
			answered(callIn(r.Request.Context()), r)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			c := callIn(r.Context())
			answered(c, nil) // the API server may have executed the write
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has disconnected
			}
			c.admitted.Refuse(w, r, unreachable(err))
		},
	})}
}

// pass passes r on. It returns an error if the API server could not identify the sender.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request) error {
	if callIn(r.Context()).sender.certified != nil && p.carrier.front == nil {
		return errCannotPassOn()
	}
	// A request that is passed on may take any time: its body may be an upload to a pod, and the
	// reader of its response a pager behind kubectl logs. An error means that w has no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	p.forward.ServeHTTP(w, r)
	return nil
}

// maxWriteResponse is the maximum size of the response to a write whose version is read.
const maxWriteResponse = 1 << 20

// versionOf returns the version of the object in r, or the ETag of a response that has no object
// because the client prefers that. It returns zero if r is nil, or has no object in an encoding of
// caches. It replaces the body that it reads.
func versionOf(r *http.Response) listwatch.Version {
	if r == nil || r.StatusCode/100 != 2 || r.Header.Get("Content-Encoding") != "" {
		return 0
	}
	if r.Header.Get("Preference-Applied") == "return=minimal" {
		// After an error, the version is zero.
		v, _ := listwatch.ParseVersion(strings.Trim(r.Header.Get("ETag"), `"`))
		return v
	}
	form, ok := bodies.Lookup(r.Header.Get("Content-Type"))
	if !ok {
		return 0
	}
	// After an error, the next read of the body returns it again.
	data, err := io.ReadAll(io.LimitReader(r.Body, maxWriteResponse))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), r.Body), r.Body}
	if err != nil {
		return 0
	}
	read := listwatch.ParseObject
	if e := framing.EncodingOf(form); e != nil {
		read = e.Read
	}
	o, err := read(data)
	if err != nil {
		return 0
	}
	return o.Version
}

// A carrier sends requests over HTTP/2 if the server offers it. Requests for another protocol, such
// as the requests of kubectl exec, are sent over HTTP/1.1, because HTTP/2 has no upgrades.
type carrier struct {
	plain, upgrades *http.Transport
	front           *carrier // for clients with certificates; nil if their requests cannot be sent
}

// newCarrier returns a carrier to the API server that adds no credentials of the relay, except the
// certificate of Options.FrontProxy to the requests of clients with certificates.
func newCarrier(o *Options) *carrier {
	c := carrierOver(certifiedBy(o.Network, nil))
	if o.FrontProxy != nil {
		c.front = carrierOver(certifiedBy(o.Network, o.FrontProxy))
	}
	return c
}

// certifiedBy returns n with the client certificate that get returns. If get is nil, there is
// none.
func certifiedBy(n transport.Network, get func() tls.Certificate) transport.Network {
	config := n.TLSConfig
	if fixed := n.TLS; config == nil {
		config = func() *tls.Config { return fixed }
	}
	n.TLS, n.TLSConfig = nil, func() *tls.Config {
		c := config()
		if c == nil {
			c = new(tls.Config)
		}
		c = c.Clone()
		c.Certificates, c.GetClientCertificate = nil, nil
		if get != nil {
			c.Certificates = []tls.Certificate{get()}
		}
		return c
	}
	return n
}

func carrierOver(n transport.Network) *carrier {
	patient := func(http2 bool) *http.Transport {
		t := n.HTTPTransport(protocols(http2))
		t.ResponseHeaderTimeout = 0 // the logs of a pod may be silent for hours
		return t
	}
	return &carrier{plain: patient(true), upgrades: patient(false)}
}

func protocols(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	return p
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if callIn(r.Context()).sender.certified != nil {
		c = c.front
	}
	if r.Header.Get("Upgrade") != "" {
		return c.upgrades.RoundTrip(r)
	}
	return c.plain.RoundTrip(r)
}

// CloseIdleConnections closes the connections that carry no request.
func (c *carrier) CloseIdleConnections() {
	c.plain.CloseIdleConnections()
	c.upgrades.CloseIdleConnections()
	if c.front != nil {
		c.front.CloseIdleConnections()
	}
}
