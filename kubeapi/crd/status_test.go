package crd_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/collectiontest"
)

// interop/kubernetes runs the same test against a Kubernetes API server.
func TestStatusIsStoredOrRefused(t *testing.T) {
	a := serve(t)
	server := httptest.NewServer(&a.handler)
	defer server.Close()
	remote := &client.Remote{URL: server.URL + "/apis/demo.example.com/v1/widgets"}
	defer remote.Close()
	collectiontest.RunStatus(t, remote, "n")
}

func TestCreateIgnoresStatus(t *testing.T) {
	a := serve(t)
	body := `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":"red"},"status":{"replicas":7}}`
	for _, created := range []string{
		a.want(t, 201, "POST", widgets, "application/json", body),
		a.want(t, 200, "PATCH", widgets+"/w?fieldManager=a&force=true", applyPatch, body),
		a.want(t, 201, "PATCH", widgets+"/x?fieldManager=a", applyPatch,
			`{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"color":"red"},"status":{"replicas":7}}`),
	} {
		if strings.Contains(created, `"status":`) || strings.Contains(created, `"f:status"`) {
			t.Errorf("got %s, want no status", created)
		}
	}
}
