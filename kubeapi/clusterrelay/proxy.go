package clusterrelay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// A passed is a request for a resource that is passed on.
type passed struct {
	kubeapi.Route
	verb   string
	writes bool
}

// passedKey is the key of the context of a request that is passed on. Its value is a passed, if the
// request is for a resource.
type passedKey struct{}

// newProxy returns a proxy for the API server at base. answered is called before the response to a
// request for a resource is sent. The response is nil if there is none.
func newProxy(base *url.URL, carrier *carrier, answered func(passed, *http.Response), errors *log.Logger) http.Handler {
	report := func(ctx context.Context, response *http.Response) {
		if p, ok := ctx.Value(passedKey{}).(passed); ok {
			answered(p, response)
		}
	}
	proxy := httpbody.Forward(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy has dropped what it cannot parse
			p.SetXForwarded()
			if c := certifiedIn(p.In.Context()); c != nil {
				c.assert(p.Out.Header)
			}
		},
		// FlushInterval passes each part of a response on at once, as Incremental (RFC 10036) asks.
		Transport: carrier, FlushInterval: -1, ErrorLog: errors,
		ModifyResponse: func(r *http.Response) error {
			report(r.Request.Context(), r)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			report(r.Context(), nil) // the API server may have executed the write
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has disconnected
			}
			watchserver.WriteError(w, r, unreachable(err))
		},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route, ok := kubeapi.ParseRoute(r.URL.EscapedPath()); ok {
			writes := !isRead(r.Method) && !slices.Contains(connections, route.Subresource)
			r = r.WithContext(context.WithValue(r.Context(), passedKey{}, passed{route, verbOf(r, route), writes}))
		}
		if certifiedIn(r.Context()) != nil && carrier.front == nil {
			watchserver.WriteError(w, r, errCannotPassOn())
			return
		}
		// The body of a request that is passed on, such as an upload to a pod, may take any time,
		// and so may the reader of a response, such as a pager behind kubectl logs. An error means
		// that w has no deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		proxy.ServeHTTP(w, r)
	})
}

// maxWriteResponse is the maximum size of the response to a write whose version is read.
const maxWriteResponse = 1 << 20

// versionOf returns the version of the object in r, which may be nil. It returns zero if there is
// none, or if r is not JSON. It replaces the body that it reads.
func versionOf(r *http.Response) listwatch.Version {
	if r == nil || r.StatusCode/100 != 2 || r.Header.Get("Content-Encoding") != "" ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), jsonType) {
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
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(data, &object) != nil {
		return 0
	}
	version, _ := listwatch.ParseVersion(object.Metadata.ResourceVersion) // zero after an error
	return version
}

// connections are the subresources whose requests write no resource, and may last for hours.
var connections = []string{"attach", "exec", "portforward", "proxy"}

func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions ||
		method == transport.MethodQuery
}

// A carrier sends requests over HTTP/2 if the server offers it. Requests for another protocol, such
// as those of kubectl exec, are sent over HTTP/1.1, because HTTP/2 has no upgrades.
type carrier struct {
	plain, upgrades *http.Transport
	front           *carrier // for clients with certificates; nil if their requests cannot be sent
}

// newCarrier returns a carrier over network, which must not add credentials. front may be nil.
func newCarrier(network transport.Network, front *transport.Network) *carrier {
	patient := func(http2 bool) *http.Transport {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(http2)
		t := network.HTTPTransport(protocols)
		t.ResponseHeaderTimeout = 0 // the logs of a pod may be silent for hours
		return t
	}
	c := &carrier{plain: patient(true), upgrades: patient(false)}
	if front != nil {
		c.front = newCarrier(*front, nil)
	}
	return c
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.front != nil && certifiedIn(r.Context()) != nil {
		return c.front.RoundTrip(r)
	}
	if r.Header.Get("Upgrade") != "" {
		return c.upgrades.RoundTrip(r)
	}
	return c.plain.RoundTrip(r)
}
