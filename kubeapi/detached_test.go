package kubeapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A trackedBody shows whether its request is still in memory.
type trackedBody struct {
	io.ReadCloser
	_ [64]byte
}

// A detached watch may last for hours, so it must not keep the headers and the body of its request.
func TestDetachedWatchReleasesItsRequest(t *testing.T) {
	r := Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	var h Handler
	h.Server.Detach = true
	h.Server.Trace = &watchserver.Trace{Opened: func(context.Context, watchserver.Watch) {}}
	if err := h.Add(r, c); err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &trackedBody{ReadCloser: r.Body}
		runtime.AddCleanup(body, func(int) { close(released) }, 0)
		r.Body = body
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.GC() {
		select {
		case <-released:
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the watch keeps its request")
		}
	}
}
