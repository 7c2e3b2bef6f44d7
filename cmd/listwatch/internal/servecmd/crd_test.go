package servecmd

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store/memory"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.example.com}
spec:
  group: demo.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-validations: [{rule: "true"}]}}
`

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newTestServer returns a server with a memory store. The server logs to log.
func newTestServer(log *bytes.Buffer) *server {
	return &server{
		Listeners: listen.Listeners{Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: metrics.New()},
		db:        memoryDatabase{memory.Open(memory.Options{})}, api: &kubeapi.Handler{},
	}
}

func TestCRDFileDeclaresResource(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(&log)
	if err := s.addResources(t.Context(),
		&serveOptions{crds: []string{writeFile(t, "crd.yaml", widgetCRD)}}); err != nil {
		t.Fatal(err)
	}
	if r, ok := kubeapi.FindResource(s.api.Resources(), "wd"); !ok || r.Kind != "Widget" || r.Validate == nil {
		t.Errorf("got %+v, %t, want a Widget with a validation", r, ok)
	}
	if got := log.String(); !strings.Contains(got, `resource=widgets.demo.example.com part="spec: the CEL rules`) {
		t.Errorf("got the log %q, want a warning about the CEL rules", got)
	}
}

func TestCRDDirectoryMayHoldOtherKinds(t *testing.T) {
	path := writeFile(t, "crd.yaml", "kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n---"+widgetCRD)
	dir := filepath.Dir(path)
	for name, text := range map[string]string{"pod.yml": "kind: Pod\napiVersion: v1\n", "README": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newTestServer(&bytes.Buffer{})
	if err := s.addResources(t.Context(), &serveOptions{crds: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if _, ok := kubeapi.FindResource(s.api.Resources(), "wd"); !ok {
		t.Error("the resource of the definition is missing")
	}
}

func TestInvalidCRDFileIsRefused(t *testing.T) {
	twice := writeFile(t, "crd.yaml", widgetCRD)
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{filepath.Join(t.TempDir(), "missing.yaml")}, "--crd: stat"},
		{
			[]string{writeFile(t, "bad.yaml", "kind: Pod\napiVersion: v1\n")},
			"bad.yaml: it contains no CustomResourceDefinition",
		},
		{
			[]string{twice, twice},
			"widgets.demo.example.com: already declared or built in; remove its --resource or --crd",
		},
	} {
		s := newTestServer(&bytes.Buffer{})
		if err := s.addResources(t.Context(), &serveOptions{crds: c.files}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.files, err, c.want)
		}
	}
}
