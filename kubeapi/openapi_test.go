package kubeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type openAPIDocument struct {
	OpenAPI, Swagger string
	Paths            map[string]map[string]struct {
		Action string                  `json:"x-kubernetes-action"`
		GVK    metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		Params []struct {
			Name, In string
		} `json:"parameters"`
		Body struct {
			Content map[string]any
		} `json:"requestBody"`
		Consumes []string
	}
	Definitions map[string]any
	Components  struct{ Schemas map[string]any }
}

// check verifies that d contains the parts that kubectl needs: a patch operation with field
// validation, a schema for the kind, and no broken references.
func (d openAPIDocument) check(t *testing.T, path string, want metav1.GroupVersionKind, schemas map[string]any,
	refs string,
) {
	t.Helper()
	patch := d.Paths[path]["patch"]
	if patch.GVK != want || patch.Action != "patch" || len(patch.Params) != 3 ||
		patch.Params[2].Name != "fieldValidation" || patch.Params[2].In != "query" {
		t.Errorf("%s: got %+v, want a patch of %v with field validation", path, patch, want)
	}
	data, err := json.Marshal(schemas)
	if err != nil {
		t.Fatal(err)
	}
	// encoding/json sorts the members of maps, so they are in this order.
	gvk := fmt.Sprintf(`"x-kubernetes-group-version-kind":[{"group":%q,"kind":%q,"version":%q}]`, want.Group, want.Kind,
		want.Version)
	if !strings.Contains(string(data), gvk) {
		t.Errorf("got %s, want it to contain %s", data, gvk)
	}
	if strings.Contains(string(data), "{}") {
		t.Errorf("got %s, want no empty schema, which kubectl explain cannot show", data)
	}
	for rest := string(data); ; {
		_, ref, found := strings.Cut(rest, `"$ref":"`)
		if !found {
			break
		}
		ref, rest, _ = strings.Cut(ref, `"`)
		if schemas[strings.TrimPrefix(ref, refs)] == nil {
			t.Errorf("%s refers to a missing schema", ref)
		}
	}
}

func TestOpenAPIDescribesEveryKind(t *testing.T) {
	a := startServer(t, nil)
	index := getJSON[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, a, "/openapi/v3")
	gadget := *kindOf("demo.example.com", "v1", "Gadget")
	for at, c := range map[string]struct {
		path string
		kind metav1.GroupVersionKind
	}{
		"api/v1": {"/api/v1/namespaces/{namespace}/pods/{name}", *kindOf("", "v1", "Pod")},
		"apis/apps/v1": {
			"/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
			*kindOf("apps", "v1", "Deployment"),
		},
		"apis/demo.example.com/v1": {"/apis/demo.example.com/v1/gadgets/{name}", gadget},
	} {
		url := index.Paths[at].ServerRelativeURL
		if !strings.HasPrefix(url, "/openapi/v3/"+at+"?hash=") {
			t.Errorf("%s: got %q, want a URL with a hash", at, url)
			continue
		}
		d := getJSON[openAPIDocument](t, a, url)
		if !strings.HasPrefix(d.OpenAPI, "3.0") {
			t.Errorf("%s: got version %q", at, d.OpenAPI)
		}
		d.check(t, c.path, c.kind, d.Components.Schemas, "#/components/schemas/")
		v2 := getJSON[openAPIDocument](t, a, "/openapi/v2")
		if v2.Swagger != "2.0" {
			t.Errorf("got version %q, want 2.0", v2.Swagger)
		}
		v2.check(t, c.path, c.kind, v2.Definitions, "#/definitions/")
	}
	for _, name := range []string{
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
	} {
		const want = "\n\x032.0\x12\x1e\n\x09listwatch\x12\x11v1.36.0+listwatchB\x00"
		if bare := a.want(t, 200, "GET", "/openapi/v2", "", "Accept", name); bare != want {
			t.Errorf("got %q, want a document without paths: %q", bare, want)
		}
		a.wantError(t, 406, "NotAcceptable", "GET", "/openapi/v3", "", "Accept", name)
	}
	a.want(t, 200, "GET", "/openapi/v2", "", "Accept",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf,application/json;q=0.5")
	a.wantError(t, 404, "NotFound", "GET", "/openapi/v3/apis/none/v1", "")
	a.wantError(t, 404, "NotFound", "GET", "/openapi/v3/api/v1/pods", "")
	a.wantError(t, 404, "NotFound", "GET", "/openapi", "")
	a.wantError(t, 405, "MethodNotAllowed", "POST", "/openapi/v3", "")
}

func TestOpenAPIURLChangesOnlyWithContent(t *testing.T) {
	index := func() string { return startServer(t, nil).want(t, 200, "GET", "/openapi/v3", "") }
	if a, b := index(), index(); a != b {
		t.Errorf("got %s and %s, want the same hashes", a, b)
	}
}

func TestOpenAPIListsSupportedPatchTypes(t *testing.T) {
	a := startServer(t, nil)
	v2 := getJSON[openAPIDocument](t, a, "/openapi/v2")
	for _, c := range []struct {
		document, path string
		want           []string
	}{
		{
			"/openapi/v3/api/v1", "/api/v1/namespaces/{namespace}/pods/{name}",
			[]string{applyCBORPatchType, applyPatchType, jsonPatchType, mergePatchType, strategicPatchType},
		},
		{
			"/openapi/v3/apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
			[]string{applyCBORPatchType, applyPatchType, jsonPatchType, mergePatchType, strategicPatchType},
		},
		{
			"/openapi/v3/apis/demo.example.com/v1", "/apis/demo.example.com/v1/gadgets/{name}",
			[]string{applyCBORPatchType, applyPatchType, jsonPatchType, mergePatchType},
		},
	} {
		d := getJSON[openAPIDocument](t, a, c.document)
		if got := slices.Sorted(maps.Keys(d.Paths[c.path]["patch"].Body.Content)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.path, got, c.want)
		}
		if got := slices.Sorted(slices.Values(v2.Paths[c.path]["patch"].Consumes)); !slices.Equal(got, c.want) {
			t.Errorf("version 2, %s: got %v, want %v", c.path, got, c.want)
		}
	}
}

func TestOpenAPIDescribesMergedLists(t *testing.T) {
	a := startServer(t, nil)
	type lists struct {
		Properties map[string]struct {
			Key      string `json:"x-kubernetes-patch-merge-key"`
			Strategy string `json:"x-kubernetes-patch-strategy"`
			Items    struct {
				Ref string `json:"$ref"`
			}
		}
	}
	v2 := getJSON[struct{ Definitions map[string]lists }](t, a, "/openapi/v2")
	v3 := getJSON[struct {
		Components struct{ Schemas map[string]lists }
	}](t, a, "/openapi/v3/api/v1")
	for refs, all := range map[string]map[string]lists{
		"#/definitions/":        v2.Definitions,
		"#/components/schemas/": v3.Components.Schemas,
	} {
		pod := all["io.k8s.api.core.v1.PodSpec"].Properties
		if c := pod["containers"]; c.Key != "name" || c.Strategy != "merge" ||
			c.Items.Ref != refs+"io.k8s.api.core.v1.Container" {
			t.Errorf("containers: got %+v", c)
		}
		if v := pod["volumes"]; v.Strategy != "merge,retainKeys" {
			t.Errorf("volumes: got %+v", v)
		}
		if f := all[objectMeta().Name].Properties["finalizers"]; f.Strategy != "merge" || f.Key != "" {
			t.Errorf("finalizers: got %+v", f)
		}
	}
}

func TestOpenAPIDocumentsAreRevalidated(t *testing.T) {
	a := startServer(t, nil)
	index := getJSON[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, a, "/openapi/v3")
	url := index.Paths["api/v1"].ServerRelativeURL
	for path, want := range map[string]string{
		url: "private, max-age=31536000, immutable", "/openapi/v3/api/v1": "no-cache, private",
		"/openapi/v3/api/v1?hash=X": "no-cache, private",
		"/openapi/v2":               "no-cache, private", "/openapi/v3": "no-cache, private",
	} {
		res := a.do(t, "GET", path, "")
		tag := res.Header.Get("ETag")
		if res.StatusCode != 200 || res.Header.Get("Cache-Control") != want || !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("%s: got %s, %v, want 200 with a weak ETag and %s", path, res.Status, res.Header, want)
		}
		for _, have := range []string{tag, `"other", ` + tag, "*", strings.TrimPrefix(tag, "W/")} {
			if got := a.want(t, 304, "GET", path, "", "If-None-Match", have); got != "" {
				t.Errorf("%s: got %q, want no body", path, got)
			}
		}
		a.want(t, 200, "GET", path, "", "If-None-Match", `W/"other"`)
	}
}
