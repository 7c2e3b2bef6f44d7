package clusterrelay

import (
	"context"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// writeKey is the key of the context of a write that is passed on. Its value is the plural of the
// resource.
type writeKey struct{}

// newProxy returns a proxy for the API server at base. wrote is called with the plural of the
// resource before the response to a write is sent.
func newProxy(base *url.URL, carrier *carrier, wrote func(plural string), errors *log.Logger) http.Handler {
	report := func(ctx context.Context) {
		if plural, ok := ctx.Value(writeKey{}).(string); ok {
			wrote(plural)
		}
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy has dropped what it cannot parse
			p.SetXForwarded()
		},
		Transport: carrier, FlushInterval: -1, ErrorLog: errors,
		ModifyResponse: func(r *http.Response) error {
			report(r.Request.Context())
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			report(r.Context()) // the API server may have executed the write
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has disconnected
			}
			watchserver.WriteError(w, r, unreachable(err))
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route, ok := kubeapi.ParseRoute(r.URL.EscapedPath()); ok && !isRead(r.Method) {
			r = r.WithContext(context.WithValue(r.Context(), writeKey{}, route.Plural))
		}
		// The body of a request that is passed on, such as an upload to a pod, may take any time.
		// An error means that w has no deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		proxy.ServeHTTP(w, r)
	})
}

func isRead(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions ||
		method == transport.MethodQuery
}

func unreachable(err error) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the relay cannot reach the API server", Err: err,
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// A carrier sends requests over HTTP/2 if the server offers it. Requests for another protocol, such
// as those of kubectl exec, are sent over HTTP/1.1, because HTTP/2 has no upgrades.
type carrier struct{ plain, upgrades *http.Transport }

// newCarrier returns a carrier over network, which must not add credentials.
func newCarrier(network transport.Network) *carrier {
	patient := func(http2 bool) *http.Transport {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(http2)
		t := network.HTTPTransport(protocols)
		t.ResponseHeaderTimeout = 0 // the logs of a pod may be silent for hours
		return t
	}
	return &carrier{plain: patient(true), upgrades: patient(false)}
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return c.upgrades.RoundTrip(r)
	}
	return c.plain.RoundTrip(r)
}

func (c *carrier) closeIdle() {
	c.plain.CloseIdleConnections()
	c.upgrades.CloseIdleConnections()
}
