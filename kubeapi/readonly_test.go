package kubeapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

func TestReadOnlyResourceRejectsWrites(t *testing.T) {
	h := &Handler{Ready: func() error { return listwatch.Cause{Message: "the source is lagging"} }}
	r := DefaultResources()[3] // deployments, which have a scale
	r.ReadOnly = true
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(),
		[]byte(`{"metadata":{"name":"web","namespace":"default"},"spec":{"replicas":1}}`)); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(r, c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	a := &testServer{h, server.URL}

	const all = "/apis/apps/v1/namespaces/default/deployments"
	for _, path := range []string{all, all + "/web", all + "/web/status", all + "/web/scale"} {
		a.want(t, 200, "GET", path, "")
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			a.want(t, 405, method, path, `{"metadata":{"name":"web"}}`)
		}
	}
	for _, path := range []string{"/apis/apps/v1", "/openapi/v2", "/openapi/v3/apis/apps/v1"} {
		if got := a.want(t, 200, "GET", path, ""); strings.Contains(got, `"patch"`) ||
			strings.Contains(got, `"create"`) || strings.Contains(got, `"post"`) {
			t.Errorf("%s lists write operations: %s", path, got)
		}
	}
	if got := a.want(t, 503, "GET", "/readyz", ""); !strings.Contains(got, "is lagging") {
		t.Errorf("/readyz: got %q, want the reason", got)
	}
	a.want(t, 200, "GET", "/healthz", "")
}
