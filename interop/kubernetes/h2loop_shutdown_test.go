//go:build !race

package kubernetes

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// When the API server shuts down, it refuses connections, ends the watches, and completes the
// requests that it has begun.
func TestOurHTTP2ShutsDownWithKubernetes(t *testing.T) {
	s := startLoopServer(t)
	w := testkit.Must(s.widgets(t, "shutdown").Watch(t.Context(), metav1.ListOptions{}))(t)
	defer w.Stop()
	text := testkit.Must(json.Marshal(newWidget("last", nil)))(t)
	body, response := startCreate(t, s, "shutdown")
	testkit.Must(body.Write(text[:10]))(t)

	ended := make(chan struct{})
	go func() { defer close(ended); s.Shutdown() }()
	eventually(t, "the refusal of connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	testkit.Must(body.Write(text[10:]))(t)
	body.Close()
	if got := <-response; got != http.StatusCreated {
		t.Errorf("the request that had begun got status %d, want %d", got, http.StatusCreated)
	}
	for e := range w.ResultChan() {
		if e.Type != "ADDED" {
			t.Errorf("got %s %v, want only the created object", e.Type, e.Object)
		}
	}
	<-ended
}

// startCreate starts a request that creates a widget, and returns when the server waits for the
// body of the request. The returned channel receives the status of the response.
func startCreate(t *testing.T, s *loopServer, namespace string) (body *io.PipeWriter, response <-chan int) {
	t.Helper()
	config := testkit.Must(rest.TLSConfigFor(s.Config()))(t)
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, ExpectContinueTimeout: waitTimeout}
	t.Cleanup(transport.CloseIdleConnections)
	read, write := io.Pipe()
	reading, status := make(chan struct{}), make(chan int, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	url := s.URL + "/apis/" + widgetGVR.Group + "/" + widgetGVR.Version + "/namespaces/" + namespace + "/" +
		widgetGVR.Resource
	r := testkit.Must(http.NewRequestWithContext(ctx, http.MethodPost, url, read))(t)
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue")
	go func() {
		defer close(status)
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			read.CloseWithError(err)
			return
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("got %s, want HTTP/2", res.Proto)
		}
		status <- res.StatusCode
	}()
	select {
	case <-reading:
	case <-status:
		t.Fatal("got a response before the body was sent")
	}
	return write, status
}
