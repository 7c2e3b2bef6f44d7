package kubeapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type openAPIDocument struct {
	OpenAPI, Swagger string
	Paths            map[string]map[string]struct {
		Action string           `json:"x-kubernetes-action"`
		GVK    groupVersionKind `json:"x-kubernetes-group-version-kind"`
		Params []struct {
			Name, In string
		} `json:"parameters"`
	}
	Definitions map[string]any
	Components  struct{ Schemas map[string]any }
}

// check holds that kubectl finds in d what it looks for: a patch with field validation, a schema by kind, and no dead references.
func (d openAPIDocument) check(t *testing.T, path string, want groupVersionKind, schemas map[string]any, refs string) {
	t.Helper()
	patch := d.Paths[path]["patch"]
	if patch.GVK != want || patch.Action != "patch" || len(patch.Params) != 3 || patch.Params[2].Name != "fieldValidation" || patch.Params[2].In != "query" {
		t.Errorf("%s: got %+v, want a patch of %v with field validation", path, patch, want)
	}
	data, err := json.Marshal(schemas)
	if err != nil {
		t.Fatal(err)
	}
	// Members of maps are encoded in alphabetical order.
	gvk := fmt.Sprintf(`"x-kubernetes-group-version-kind":[{"group":%q,"kind":%q,"version":%q}]`, want.Group, want.Kind, want.Version)
	if !strings.Contains(string(data), gvk) {
		t.Errorf("got %s, want %s in it", data, gvk)
	}
	for rest := string(data); ; {
		_, ref, found := strings.Cut(rest, `"$ref":"`)
		if !found {
			break
		}
		ref, rest, _ = strings.Cut(ref, `"`)
		if schemas[strings.TrimPrefix(ref, refs)] == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
}

func TestOpenAPITellsEveryKind(t *testing.T) {
	a := serve(t, nil)
	index := read[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, a, "/openapi/v3")
	gadget := groupVersionKind{"demo.example.com", "v1", "Gadget"}
	for at, c := range map[string]struct {
		path string
		kind groupVersionKind
	}{
		"api/v1":                   {"/api/v1/namespaces/{namespace}/pods/{name}", groupVersionKind{"", "v1", "Pod"}},
		"apis/apps/v1":             {"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", groupVersionKind{"apps", "v1", "Deployment"}},
		"apis/demo.example.com/v1": {"/apis/demo.example.com/v1/gadgets/{name}", gadget},
	} {
		url := index.Paths[at].ServerRelativeURL
		if !strings.HasPrefix(url, "/openapi/v3/"+at+"?hash=") {
			t.Errorf("%s: got %q, want a URL with a hash", at, url)
			continue
		}
		d := read[openAPIDocument](t, a, url)
		if !strings.HasPrefix(d.OpenAPI, "3.0") {
			t.Errorf("%s: got version %q", at, d.OpenAPI)
		}
		d.check(t, c.path, c.kind, d.Components.Schemas, "#/components/schemas/")
		v2 := read[openAPIDocument](t, a, "/openapi/v2")
		if v2.Swagger != "2.0" {
			t.Errorf("got version %q, want 2.0", v2.Swagger)
		}
		v2.check(t, c.path, c.kind, v2.Definitions, "#/definitions/")
	}
	a.refused(t, 406, "NotAcceptable", "GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	a.want(t, 200, "GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf,application/json;q=0.5")
	a.refused(t, 404, "NotFound", "GET", "/openapi/v3/apis/none/v1", "")
	a.refused(t, 404, "NotFound", "GET", "/openapi/v3/api/v1/pods", "")
	a.refused(t, 404, "NotFound", "GET", "/openapi", "")
	a.refused(t, 405, "MethodNotAllowed", "POST", "/openapi/v3", "")
}

func TestADocumentKeepsItsURLUntilItChanges(t *testing.T) {
	index := func() string { return serve(t, nil).want(t, 200, "GET", "/openapi/v3", "") }
	if a, b := index(), index(); a != b {
		t.Errorf("got %s and %s, want the same hashes", a, b)
	}
}
