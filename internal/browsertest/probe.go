package browsertest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Probe serves the site at target with a script added to the page at path. The returned channel
// receives each body that the script posts to /shown. The caller may set the fields of target
// later, before the first request.
//
// The page loses its Content-Security-Policy, which may forbid the script.
func Probe(t *testing.T, target *url.URL, path, script string) (site *httptest.Server, shown <-chan []byte) {
	t.Helper()
	posts := make(chan []byte, 100)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != path {
				return nil
			}
			page, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(append(page, script...)))
			r.Header.Del("Content-Length")
			r.Header.Del("Content-Security-Policy")
			r.ContentLength = -1
			return err
		},
	}
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/shown" {
			proxy.ServeHTTP(w, r)
			return
		}
		text, _ := io.ReadAll(r.Body) // a truncated text does not match what a test expects
		select {
		case posts <- text:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(site.Close)
	t.Cleanup(site.CloseClientConnections)
	return site, posts
}
