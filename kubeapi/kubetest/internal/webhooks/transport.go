// Package webhooks calls the webhooks that are services of the cluster.
package webhooks

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// A Transport is an [http.RoundTripper] for the requests to services.
type Transport struct {
	// Mux has the handlers, which are called in memory. The patterns can name the host of a
	// service, such as webhook.system.svc.
	Mux *http.ServeMux
	// Server is the URL of a server that receives the requests instead. Its certificate is not
	// verified. If nil, Mux is used.
	Server *url.URL
}

// network sends requests to servers. It keeps no connections, because tests end without notice.
var network = &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}

// RoundTrip implements [http.RoundTripper]. If the context of the request ends first, it does not
// wait for the handler.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Server != nil {
		q := r.Clone(r.Context())
		q.URL.Scheme, q.URL.Host, q.Host = t.Server.Scheme, t.Server.Host, t.Server.Host
		return network.RoundTrip(q)
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	q := r.Clone(r.Context())
	q.Host, q.RequestURI, q.Body = r.URL.Host, r.URL.RequestURI(), io.NopCloser(bytes.NewReader(body))
	if _, pattern := t.Mux.Handler(q); pattern == "" {
		return nil, fmt.Errorf("kubetest: the mux of Env.WebhookMux has no handler for %s; "+
			"has the webhook server been given this mux, and has the webhook been registered?", q.URL.Path)
	}
	type result struct {
		response *http.Response
		err      error
	}
	done := make(chan result, 1)
	go func() { // ends when the handler returns
		var res result
		defer func() { done <- res }()
		defer func() {
			if p := recover(); p != nil {
				res.err = fmt.Errorf("kubetest: the handler of %s has panicked: %v", q.URL.Path, p)
			}
		}()
		w := httptest.NewRecorder()
		t.Mux.ServeHTTP(w, q)
		res.response = w.Result()
	}()
	select {
	case res := <-done:
		return res.response, res.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// Resolver returns a function that makes the clients of webhooks call those that are services
// through t. Webhooks that have a URL are called there.
func (t Transport) Resolver() webhook.AuthenticationInfoResolverWrapper {
	return func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(string) (*rest.Config, error) { return &rest.Config{}, nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) {
				return &rest.Config{
					WrapTransport: func(http.RoundTripper) http.RoundTripper { return t },
				}, nil
			},
		}
	}
}
