package httpbody_test

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/testhttp"
)

// A lateEnd is a body whose end is read late in a bubble, as on a busy machine.
type lateEnd struct {
	io.ReadCloser
	left int64
}

func (l *lateEnd) Read(p []byte) (int, error) {
	if l.left == 0 {
		<-time.After(time.Second)
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	return n, err
}

func TestResponsesAreNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := testhttp.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			_ = http.NewResponseController(w).Flush() // the response is in memory
			time.Sleep(2 * time.Second)
			_, _ = io.WriteString(w, " and the end")
		}), testhttp.Options{})
		target, err := url.Parse(backend.URL(""))
		if err != nil {
			t.Fatal(err)
		}
		connections := &http.Transport{DialContext: backend.Dial}
		defer connections.CloseIdleConnections()
		proxy := &httputil.ReverseProxy{Transport: connections, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Body = &lateEnd{p.Out.Body, p.Out.ContentLength}
			httpbody.EndAtLength(p.Out)
		}}
		front := testhttp.Start(t, proxy, testhttp.Options{})
		client := &http.Client{Transport: &http.Transport{DialContext: front.Dial}}
		defer client.CloseIdleConnections()
		response, err := client.Post(front.URL("/"), "text/plain", strings.NewReader("the body"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "the body and the end" {
			t.Errorf("got %q, %v, want the whole response", got, err)
		}
	})
}
