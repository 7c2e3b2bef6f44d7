package crd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	widgets    = "/apis/demo.example.com/v1/namespaces/n/widgets"
	gadgets    = "/apis/demo.example.com/v1/gadgets"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// An api serves the resources of testdata/widgets.yaml.
type api struct {
	handler  kubeapi.Handler
	warnings []string // of the last response
}

func serve(t *testing.T) *api {
	t.Helper()
	text, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crd.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	db, a := memory.Open(memory.Options{}), &api{}
	for _, d := range definitions {
		c, err := db.Collection(d.CollectionSpec())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.AddTo(&a.handler, c); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// want sends a request and returns the body of the response. The status code must be code.
func (a *api) want(t *testing.T, code int, method, path, contentType, body string, header ...string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	a.warnings = w.Header()["Warning"]
	data, err := io.ReadAll(w.Body)
	if err != nil || w.Code != code {
		t.Fatalf("%s %s: got %d, %v, want %d: %s", method, path, w.Code, err, code, data)
	}
	return string(data)
}

func wantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(got, text) {
			t.Errorf("got %s, want it to contain %s", got, text)
		}
	}
}

func widget(name, spec string) string {
	return `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

func TestWritesOfInvalidObjectsAreRefused(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	for _, c := range []struct{ method, path, contentType, body string }{
		{"POST", widgets, "application/json", widget("x", `{"color":"pink"}`)},
		{"PATCH", widgets + "/w", mergePatch, `{"spec":{"color":"pink"}}`},
		{"PATCH", widgets + "/w?fieldManager=a&force=true", applyPatch, widget("w", `{"color":"pink"}`)},
		{"PATCH", widgets + "/new?fieldManager=a", applyPatch, widget("new", `{"color":"pink"}`)},
		{"PATCH", widgets + "/w/status", mergePatch, `{"status":{"replicas":"1"}}`},
		{"PATCH", widgets + "/w/scale", mergePatch, `{"spec":{"replicas":11}}`},
	} {
		got := a.want(t, 422, c.method, c.path, c.contentType, c.body)
		wantText(t, got, `"reason":"Invalid"`, `"kind":"Widget"`, `"causes":[{"reason":"FieldValue`,
			".demo.example.com")
	}
	wantText(t, a.want(t, 422, "POST", widgets, "application/json", widget("x", `{}`)),
		`Widget.demo.example.com \"x\" is invalid: spec.color: Required value`, `"field":"spec.color"`)
	a.want(t, 201, "POST", gadgets, "application/json",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"g"},"spec":7}`)
}

func TestOldFaultsDoNotBlockOtherChanges(t *testing.T) {
	a := serve(t)
	c := a.handler.Collection(a.handler.Resources()[0])
	if _, err := c.CreateIn(t.Context(), "n", []byte(widget("w", `{"color":"pink"}`))); err != nil {
		t.Fatal(err)
	}
	a.want(t, 200, "PATCH", widgets+"/w", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`)
	a.want(t, 422, "PATCH", widgets+"/w", mergePatch, `{"spec":{"color":"puce"}}`)
	a.want(t, 200, "PATCH", widgets+"/w", mergePatch, `{"spec":{"color":"blue"}}`)
}

func TestUnknownFieldsAreReported(t *testing.T) {
	a := serve(t)
	body := widget("w", `{"color":"red","colour":"red"}`)
	wantText(t, a.want(t, 400, "POST", widgets+"?fieldValidation=Strict", "application/json", body),
		`unknown field \"spec.colour\"`)
	a.want(t, 201, "POST", widgets, "application/json", body)
}

func TestUpdateNeedsAVersion(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	wantText(t, a.want(t, 422, "PUT", widgets+"/w", "application/json", widget("w", `{"color":"blue"}`)),
		"metadata.resourceVersion")
}

func TestSubresourcesExistIfDeclared(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red","replicas":2}`))
	a.want(t, 200, "PATCH", widgets+"/w/status", mergePatch,
		`{"status":{"replicas":1,"selector":"a=b"},"spec":{"color":"blue"}}`)
	wantText(t, a.want(t, 200, "GET", widgets+"/w", "", ""), `"color":"red"`, `"selector":"a=b"`)
	wantText(t, a.want(t, 200, "GET", widgets+"/w/scale", "", ""),
		`"spec":{"replicas":2},"status":{"replicas":1,"selector":"a=b"}`)
	a.want(t, 200, "PATCH", widgets+"/w/scale", mergePatch, `{"spec":{"replicas":4}}`)
	a.want(t, 201, "POST", gadgets, "application/json",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"g"}}`)
	wantText(t, a.want(t, 404, "GET", gadgets+"/g/status", "", ""),
		`"details":{"name":"g","group":"demo.example.com","kind":"gadgets"}`)
	wantText(t, a.want(t, 405, "POST", widgets+"/w/status", "application/json", "{}"),
		`"details":{"group":"demo.example.com","kind":"widgets"}`)
	a.want(t, 404, "GET", gadgets+"/g/scale", "", "")
	wantText(t, a.want(t, 200, "GET", "/apis/demo.example.com/v1", "", ""), `"shortNames":["wd"]`,
		`"categories":["all","toys"]`, `"name":"widgets/scale"`)
}

func TestListsHaveColumnsAndSelectableFields(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("r", `{"color":"red","replicas":2}`))
	a.want(t, 201, "POST", widgets, "application/json", widget("b", `{"color":"blue"}`))
	list := a.want(t, 200, "GET", widgets+"?fieldSelector=spec.color%3Dred", "", "", "Accept",
		"application/json;as=Table;g=meta.k8s.io;v=v1")
	wantText(t, list, `"name":"Color"`, `"cells":["r","red",null,2,`)
	if strings.Contains(list, "blue") {
		t.Errorf("got %s, want only the red widget", list)
	}
}

func TestApplyMergesListsByTheSchema(t *testing.T) {
	a := serve(t)
	apply := func(code int, manager, spec string) string {
		t.Helper()
		return a.want(t, code, "PATCH", widgets+"/w?fieldManager="+manager, applyPatch, widget("w", spec))
	}
	apply(201, "one", `{"color":"red","parts":[{"id":"a","weight":1}],"tags":["x"],"frame":{"width":1}}`)
	wantText(t, apply(200, "two", `{"parts":[{"id":"b","weight":2}],"tags":["y"]}`),
		`"parts":[{"id":"a","weight":1},{"id":"b","weight":2}]`, `"tags":["x","y"]`)
	wantText(t, apply(409, "two", `{"parts":[{"id":"a","weight":3}]}`), `conflict with \"one\"`,
		`.spec.parts[id=\"a\"].weight`)
	wantText(t, apply(409, "two", `{"frame":{"height":3}}`), `"field":".spec.frame"`)
}

func TestApplyWithoutNameChangesObject(t *testing.T) {
	a := serve(t)
	const nameless = `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":null,"spec":{"color":"red"}}`
	a.want(t, 400, "PATCH", widgets+"/w?fieldManager=a", applyPatch, nameless)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	wantText(t, a.want(t, 200, "PATCH", widgets+"/w?fieldManager=a", applyPatch, nameless), `"name":"w"`)
}

func TestApplyOfUnknownFieldFails(t *testing.T) {
	a := serve(t)
	config := widget("w", `{"color":"red","colour":"red"}`)
	wantText(t, a.want(t, 400, "PATCH", widgets+"/w?fieldManager=a&fieldValidation=Ignore", applyPatch, config),
		"spec.colour")
}

func TestStatusApplyKeepsEarlierManagers(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	none := a.want(t, 200, "PATCH", widgets+"/w/status?fieldManager=a", applyPatch, widget("w", `{"color":"blue"}`))
	if strings.Contains(none, "managedFields") {
		t.Errorf("got %s, want no write", none)
	}
	status := `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"w"},"status":{"replicas":1}}`
	wantText(t, a.want(t, 200, "PATCH", widgets+"/w/status?fieldManager=a", applyPatch, status),
		`"manager":"before-first-apply"`)
	wantText(t, a.want(t, 409, "PATCH", widgets+"/w?fieldManager=a", applyPatch, widget("w", `{"color":"blue"}`)),
		`.spec.color`)
}

func TestVersionOfCreateHasNoEffectInDryRun(t *testing.T) {
	a := serve(t)
	versioned := strings.Replace(widget("w", `{"color":"red"}`), `"w"`, `"w","resourceVersion":"7"`, 1)
	a.want(t, 400, "POST", widgets, "application/json", versioned)
	a.want(t, 201, "POST", widgets+"?dryRun=All", "application/json", versioned)
	a.want(t, 201, "PATCH", widgets+"/w?fieldManager=a", applyPatch, versioned)
}

func TestNullLabelPatchOfTrackedObjectIsNoWrite(t *testing.T) {
	a := serve(t)
	created := a.want(t, 201, "PATCH", widgets+"/w?fieldManager=a", applyPatch, widget("w", `{"color":"red"}`))
	if got := a.want(t, 200, "PATCH", widgets+"/w", mergePatch, `{"metadata":{"labels":{"b":null}}}`); got != created {
		t.Errorf("got %s, want %s", got, created)
	}
}

func TestStrategicMergePatchIsUnsupported(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	a.want(t, http.StatusUnsupportedMediaType, "PATCH", widgets+"/w", "application/strategic-merge-patch+json", `{}`)
}

func TestOpenAPIHasTheSchemaOfTheDefinition(t *testing.T) {
	a := serve(t)
	doc := a.want(t, 200, "GET", "/openapi/v3/apis/demo.example.com/v1", "", "")
	wantText(t, doc, `"description":"A Widget is a thing to play with."`,
		`"description":"The color of the paint.","enum":["red","green","blue"]`,
		`"required":["color","size"]`, `"x-kubernetes-list-map-keys":["id"]`,
		`"x-kubernetes-group-version-kind":[{"group":"demo.example.com","version":"v1","kind":"Widget"}]`,
		`"com.example.demo.v1.Widget"`, `The name of the object, its labels, and other metadata.`)
	if strings.Contains(doc, "strategic-merge-patch") || strings.Contains(doc, `gadgets/{name}/status"`) {
		t.Errorf("got %s, want no strategic merge patches and no status of gadgets", doc)
	}
	wantText(t, a.want(t, 200, "GET", "/openapi/v2", "", ""), `"com.example.demo.v1.Widget"`)
}

func TestNewFinalizersWithoutDomainCauseWarnings(t *testing.T) {
	a := serve(t)
	patch := func(finalizers string) []string {
		a.want(t, 200, "PATCH", widgets+"/a", mergePatch, `{"metadata":{"finalizers":[`+finalizers+`]}}`)
		return a.warnings
	}
	a.want(t, 201, "POST", widgets, "application/json", widget("a", `{"color":"red"}`))
	if got := strings.Join(patch(`"x","x.y","example.com/z","orphan"`), "\n"); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, `"x\": prefer a domain-qualified finalizer name to`) ||
		!strings.Contains(got, `"x.y\": prefer a domain-qualified finalizer name including a path`) {
		t.Errorf("got the warnings %s, want one of x and one of x.y", got)
	}
	if got := patch(`"x","x.y","w"`); len(got) != 1 || !strings.Contains(got[0], `"w`) {
		t.Errorf("got the warnings %q, want one of the new finalizer", got)
	}
}

// As in Kubernetes, the error names the type of the patched object.
func TestPatchOfTheTypeIsRefused(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	for body, want := range map[string]string{
		`{"apiVersion":"v9"}`:             `Widget \"w\" is invalid: apiVersion`,
		`{"apiVersion":"example.com/v9"}`: `Widget.example.com \"w\" is invalid: apiVersion`,
		`{"apiVersion":"a/b/c"}`:          `unexpected GroupVersion string: a/b/c`,
		`{"kind":"Other"}`:                `Other.demo.example.com \"w\" is invalid: kind`,
	} {
		wantText(t, a.want(t, 422, "PATCH", widgets+"/w", mergePatch, body), want)
	}
}

func TestStatusWritesNameThePathBelowTheStatus(t *testing.T) {
	a := serve(t)
	a.want(t, 201, "POST", widgets, "application/json", widget("w", `{"color":"red"}`))
	got := a.want(t, 422, "PATCH", widgets+"/w/status", mergePatch, `{"status":{"conditions":[{"type":1}]}}`)
	wantText(t, got, `"field":"status.conditions[0].type"`, `: conditions[0].type in body must be of type string`)
	got = a.want(t, 500, "GET", widgets+"/w/scale", "", "")
	wantText(t, got, `Internal error occurred: the spec replicas field \".spec.replicas\" does not exist`)
	got = a.want(t, 400, "PATCH", widgets+"/w/scale", mergePatch, `{"metadata":{"name":"w"}}`)
	wantText(t, got, `the spec replicas field \".spec.replicas\" cannot be empty`)
}
