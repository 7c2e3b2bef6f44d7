package conformancecmd_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
)

// A crdServer is a server that has only custom resources, like the extension server of
// Kubernetes. It implements only what a conformance run needs.
type crdServer struct {
	db *memory.DB

	mu sync.RWMutex
	// Guarded by mu.
	api              *kubeapi.Handler
	defined, removed []string
}

func (c *crdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	switch name, ok := strings.CutPrefix(r.URL.Path, definitions); {
	case ok && r.Method == http.MethodPost:
		c.define(w, r)
	case ok && r.Method == http.MethodDelete:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.removed = append(c.removed, strings.TrimPrefix(name, "/"))
		_, _ = io.WriteString(w, `{"kind":"Status","status":"Success"}`)
	default:
		c.mu.RLock()
		api := c.api
		c.mu.RUnlock()
		api.ServeHTTP(w, r)
	}
}

func (c *crdServer) define(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Metadata struct{ Name string }
		Spec     struct {
			Group    string
			Names    struct{ Plural, Kind string }
			Versions []struct{ Name string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	resource := kubeapi.Resource{
		Group: body.Spec.Group, Version: body.Spec.Versions[0].Name, Plural: body.Spec.Names.Plural,
		Kind:       body.Spec.Names.Kind,
		Namespaced: true, Fields: []string{"spec.phase"},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	things, err := c.db.Collection(resource.CollectionSpec())
	if err == nil {
		err = c.api.Add(resource, things)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	c.defined = append(c.defined, body.Metadata.Name)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "{}")
}

func TestServerWithoutConfigMapsUsesCustomResource(t *testing.T) {
	d := &crdServer{db: memory.Open(memory.Options{}), api: &kubeapi.Handler{}}
	server := httptest.NewServer(d)
	defer server.Close()
	c, err := adapters.Kube(t.Context(), server.URL, "", patient)
	if err != nil {
		t.Fatal(err)
	}
	// The test server does not support HTTP/2 without TLS, so h2 is not tested.
	if notes := strings.Join(c.Target.Notes, "\n"); !strings.Contains(notes,
		"a custom resource created for this run") || !strings.Contains(notes, "h2 is not tested") {
		t.Errorf("got notes %q", notes)
	}
	if n := countPasses(t, c.Target, conformance.Options{Run: []string{"select", "event/create-update-delete"}}); n <
		20 {
		t.Errorf("only %d runs passed", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(d.defined) != 1 || len(d.removed) != 1 || d.defined[0] != d.removed[0] {
		t.Errorf("defined %q, removed %q; want one, and its removal", d.defined, d.removed)
	}
}
