//go:build !race

package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A requestLog records the requests of a client. It answers the next resume with 410 if expire is
// true.
type requestLog struct {
	http.RoundTripper

	mu sync.Mutex
	// Guarded by mu.
	queries []string
	watch   io.Closer // the body of the newest watch
	expire  bool
}

func (r *requestLog) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := req.URL.Query()
	r.queries = append(r.queries, req.URL.RawQuery)
	if r.expire && q.Get("watch") != "" && q.Get("sendInitialEvents") == "" {
		r.expire = false
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
		return &http.Response{
			StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)),
		}, nil
	}
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil && q.Get("watch") != "" {
		r.watch = resp.Body
	}
	return resp, err
}

// expireWatch cuts the newest watch, and lets its history expire.
func (r *requestLog) expireWatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire = true
	_ = r.watch.Close() // the client sees the end
}

// take returns the queries since the last call.
func (r *requestLog) take() (queries []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queries, r.queries = r.queries, nil
	return queries
}

// A Kubernetes API server sends no differences. It ignores the request for one and sends the whole
// state in the same response, and a client of ours does not even request one, because the server
// does not identify its states.
func TestKubernetesIgnoresRequestsForDifferences(t *testing.T) {
	server := apiserver.Start(t)
	maps := schema.GroupVersionResource{Group: relayGroup, Version: "v1", Resource: "configmaps"}
	createCRD(t, server.Config(), maps, "ConfigMap")
	c, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	requests := &requestLog{RoundTripper: c.Transport}
	c.Transport = requests
	remote := &client.Remote{
		URL:        server.URL + "/apis/" + relayGroup + "/v1/namespaces/default/configmaps",
		HTTPClient: c,
	}
	defer remote.Close()
	const objects = 3
	var has listwatch.Version
	for i := range objects {
		o, err := remote.Create(t.Context(),
			fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":"ConfigMap","metadata":{"name":"c%d"}}`, relayGroup, i))
		if err != nil {
			t.Fatal(err)
		}
		has = o.Version
	}
	requests.take()
	w, err := remote.Watch(t.Context(), listwatch.Query{
		Start: listwatch.StartAt, Version: has, InitialEvents: listwatch.InitialEventsYes, Bookmarks: true,
		Since: listwatch.State{Version: has, ID: "epoch.selection"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	received := 0
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != listwatch.Synced {
			received++
			continue
		}
		if _, isDifference := e.Since(); isDifference || e.State().ID != "" || received != objects {
			t.Errorf("received %d objects and %s, want the whole state: %d", received, e.Object.Data, objects)
		}
		break
	}
	if q := requests.take(); len(q) != 1 || !strings.Contains(q[0], "initialEventsSince=") {
		t.Errorf("sent %q, want one request for a difference", q)
	}

	states := make(chan informer.StateChange, 2)
	i := &informer.Informer[*listwatch.Object]{
		Source: remote, Trace: &informer.Trace{Received: func(s informer.StateChange) { states <- s }},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = i.Run(ctx) // until cancel
	}()
	defer func() {
		cancel()
		<-ended
	}()
	<-states
	requests.take()
	requests.expireWatch()
	if s := <-states; s.Objects != objects || s.Since != 0 || s.Reason != "unsupported" {
		t.Errorf("received %+v, want the whole state", s)
	}
	if q := requests.take(); len(q) != 2 || strings.Contains(q[1], "initialEventsSince=") {
		t.Errorf("sent %q, want the resume and one request for the whole state", q)
	}
}
