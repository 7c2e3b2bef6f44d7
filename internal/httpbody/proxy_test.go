package httpbody_test

import (
	"context"
	"fmt"
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
	"github.com/listwatch/listwatch/transport/h2"
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
		proxy := httpbody.Forward(&httputil.ReverseProxy{
			Transport: connections, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		})
		late := func(w http.ResponseWriter, r *http.Request) {
			r.Body = &lateEnd{r.Body, r.ContentLength}
			proxy.ServeHTTP(w, r)
		}
		front := testhttp.Start(t, http.HandlerFunc(late), testhttp.Options{})
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

// start starts a server of HTTP/1.1, or of HTTP/2 with the loop of this project or of net/http, and
// returns a transport for it.
func start(t *testing.T, h http.Handler, protocol string) (*testhttp.Server, *http.Transport) {
	s := testhttp.Start(t, h, testhttp.Options{TLS: true, Configure: func(hs *http.Server) {
		if protocol != "HTTP/1.1" {
			h2.Configure(hs, h2.Config{NetHTTP: protocol == "HTTP/2 of net/http"})
		}
	}})
	tr := &http.Transport{TLSClientConfig: s.ClientTLS, ForceAttemptHTTP2: protocol != "HTTP/1.1", DialContext: s.Dial}
	t.Cleanup(tr.CloseIdleConnections)
	return s, tr
}

// The client sends a part of its body and waits for the response. The server responds before it has
// the body, or resets the stream, or closes the connection.
func TestForwardedResponsesDoNotWaitForBodies(t *testing.T) {
	protocols := []string{"HTTP/1.1", "HTTP/2", "HTTP/2 of net/http"}
	for _, front := range protocols {
		for _, back := range protocols {
			for _, status := range []int{200, 404, 0} { // zero means that there is no response
				t.Run(fmt.Sprint(front, " to ", back, " ", status), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testEarlyResponse(t, front, back, status) })
				})
			}
		}
	}
}

func testEarlyResponse(t *testing.T, front, back string, status int) {
	backend, tr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		if status == 0 && r.ProtoMajor == 1 {
			// A panic would wait for the rest of the body.
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
			return
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1.1 then responds at once
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the response")
	}), back)
	target, err := url.Parse(backend.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	proxy := httpbody.Forward(&httputil.ReverseProxy{
		Transport: tr, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
	})
	server, client := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		proxy.ServeHTTP(w, r)
	}), front)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, more := io.Pipe()
	defer more.Close()
	go func() { _, _ = io.WriteString(more, "half") }() // ends when the client has read it
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL("/"), body)
	if err != nil {
		t.Fatal(err)
	}
	if r.ContentLength = 8; status == 200 {
		r.ContentLength = -1
	}
	start := time.Now()
	response, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	want := status
	if status == 0 {
		want = http.StatusBadGateway
	} else if string(text) != "the response" {
		t.Errorf("got the body %q, %v", text, err)
	}
	if took := time.Since(start); response.StatusCode != want || err != nil || took > 3*time.Second {
		t.Errorf("got %d, %v after %v, want %d within 3 s", response.StatusCode, err, took, want)
	}
	<-served
}
