package kubeapi

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// inCBOR encodes a value as Kubernetes' clients do.
func inCBOR(t *testing.T, v any) string {
	t.Helper()
	out, err := direct.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return "\xd9\xd9\xf7" + string(out)
}

// fromCBOR decodes a body as Kubernetes' clients do.
func fromCBOR[T any](t *testing.T, body string) (v T) {
	t.Helper()
	if !strings.HasPrefix(body, "\xd9\xd9\xf7") {
		t.Fatalf("got %q, want CBOR with the tag 55799", body)
	}
	if err := direct.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("% x: %v", body, err)
	}
	return v
}

type anyObject = map[string]any

func gadget(name string, more anyObject) anyObject {
	o := anyObject{"apiVersion": "demo.example.com/v1", "kind": "Gadget", "metadata": anyObject{"name": name}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// wantCBOR sends a body in CBOR and returns the response, which must be CBOR too.
func (a *testServer) wantCBOR(t *testing.T, code int, method, path, mediaType, body string) string {
	t.Helper()
	res := a.do(t, method, path, body, "Content-Type", mediaType, "Accept",
		"application/json;q=0.9,application/cbor;q=1")
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != code || res.Header.Get("Content-Type") != cborType {
		t.Fatalf("%s %s: got %s, %s and %q, want %d in CBOR", method, path, res.Status, res.Header.Get("Content-Type"),
			out, code)
	}
	return string(out)
}

func TestRequestsAndResponsesInCBOR(t *testing.T) {
	a := startServer(t, nil)
	created := fromCBOR[anyObject](t,
		a.wantCBOR(t, 201, "POST", gadgets, cborType,
			inCBOR(t, gadget("a", anyObject{"n": 1<<53 + 1, "raw": []byte("\x00\xff")}))))
	if created["n"] != int64(1<<53+1) || created["raw"] != "AP8=" {
		t.Errorf("got %v, want the exact number, and the bytes as base64", created)
	}
	if got := a.want(t, 200, "GET", gadgets+"/a", ""); !strings.Contains(got, `"n":9007199254740993`) ||
		!strings.Contains(got, `"raw":"AP8="`) {
		t.Errorf("got %s in JSON", got)
	}
	a.wantCBOR(t, 200, "PUT", gadgets+"/a", cborType, inCBOR(t, gadget("a", anyObject{"n": 1.5})))
	applied := fromCBOR[anyObject](t,
		a.wantCBOR(t, 200, "PATCH", gadgets+"/a?fieldManager=m", applyCBORPatchType,
			inCBOR(t, gadget("a", anyObject{"x": "y"}))))
	if applied["n"] != 1.5 || applied["x"] != "y" {
		t.Errorf("got %v, want the applied field too", applied)
	}
	a.wantCBOR(t, 201, "PATCH", gadgets+"/b?fieldManager=m", applyCBORPatchType, inCBOR(t, gadget("b", nil)))
	a.wantCBOR(t, 200, "PATCH", gadgets+"/b", mergePatchType, `{"z":1}`)

	list := fromCBOR[struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta `json:"metadata"`
		Items           []anyObject     `json:"items"`
	}](t, a.wantCBOR(t, 200, "GET", gadgets, "", ""))
	if list.Kind != "GadgetList" || list.Metadata.ResourceVersion == "" || len(list.Items) != 2 ||
		list.Items[0]["x"] != "y" {
		t.Errorf("got %+v, want a list of two", list)
	}
	again := fromCBOR[anyObject](t, a.wantCBOR(t, 200, "GET", gadgets+"/a", "", ""))
	if diff := cmp.Diff(list.Items[0], again); diff != "" {
		t.Errorf("the item of the list differs from the object (-list +object):\n%s", diff)
	}

	a.wantCBOR(t, 200, "DELETE", gadgets+"/a", cborType, inCBOR(t, metav1.DeleteOptions{DryRun: []string{"All"}}))
	status := fromCBOR[metav1.Status](t,
		a.wantCBOR(t, 200, "DELETE", gadgets+"/a", cborType, inCBOR(t, metav1.DeleteOptions{})))
	if status.Status != "Success" || status.Details.Name != "a" {
		t.Errorf("got %+v, want a Status about a", status)
	}
	if status := fromCBOR[metav1.Status](t,
		a.wantCBOR(t, 404, "GET", gadgets+"/a", "", "")); status.Reason != metav1.StatusReasonNotFound ||
		status.Code != 404 {
		t.Errorf("got %+v, want NotFound", status)
	}
	if deleted := fromCBOR[anyObject](t,
		a.wantCBOR(t, 200, "DELETE", gadgets, "", "")); len(deleted["items"].([]any)) != 1 {
		t.Errorf("got %v, want the deleted object", deleted)
	}
}

func TestCBORNumbersBeyondInt64AreKept(t *testing.T) {
	a := startServer(t, nil)
	a.wantCBOR(t, 201, "POST", gadgets, cborType,
		"\xa2\x68metadata\xa1\x64name\x61a\x61n\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	if got := a.want(t, 200, "GET", gadgets+"/a", ""); !strings.Contains(got, `"n":18446744073709551616`) {
		t.Errorf("got %s, want 2^64", got)
	}
	// Kubernetes' clients decode this number as a float64, from JSON too.
	if got := fromCBOR[anyObject](t, a.wantCBOR(t, 200, "GET", gadgets+"/a", "", ""))["n"]; got != math.Pow(2, 64) {
		t.Errorf("got %v, want 2^64 as float64", got)
	}
}

func TestInvalidCBORIsRefused(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.MaxBodyBytes = 1000 })
	for name, c := range map[string]struct {
		code         int
		body, reason string
	}{
		"JSON":              {400, `{"metadata":{"name":"a"}}`, "BadRequest"},
		"cut":               {400, inCBOR(t, gadget("a", nil))[:20], "BadRequest"},
		"two items":         {400, inCBOR(t, gadget("a", nil)) + "\xa0", "BadRequest"},
		"duplicate members": {400, "\xa2\x68metadata\xa1\x64name\x61a\x48metadata\xa0", "BadRequest"},
		"NaN":               {400, "\xa2\x68metadata\xa1\x64name\x61a\x61n\xf9\x7e\x00", "BadRequest"},
		"large": {
			413, inCBOR(t, gadget("a", anyObject{"x": strings.Repeat("x", 1000)})),
			"RequestEntityTooLarge",
		},
		"large in JSON": {413, "\xa2\x68metadata\xa1\x64name\x61a\x61n\x98\xff" +
			strings.Repeat("\xf9\x00\x01", 255), "RequestEntityTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			a.wantError(t, c.code, c.reason, "POST", gadgets, c.body, "Content-Type", cborType)
			a.wantError(t, c.code, c.reason, "PATCH", gadgets+"/a?fieldManager=m", c.body, "Content-Type",
				applyCBORPatchType)
		})
	}
	if list := a.want(t, 200, "GET", gadgets, ""); !strings.Contains(list, `"items":[]`) {
		t.Errorf("got %s, want no object", list)
	}
}

// As in Kubernetes, tables and the discovery of custom resources are never sent in CBOR.
func TestTablesAndDiscoveryStayJSON(t *testing.T) {
	a := startServer(t, nil)
	const table = ";as=Table;v=v1;g=meta.k8s.io"
	for accept, want := range map[string]string{
		"application/cbor" + table + ",application/json" + table: `"kind":"Table"`,
		"application/cbor" + table + ",application/json":         `"kind":"GadgetList"`,
		"application/json" + table + ",application/cbor":         `"kind":"Table"`,
	} {
		if got := a.want(t, 200, "GET", gadgets, "", "Accept", accept); !strings.Contains(got, want) || got[0] != '{' {
			t.Errorf("%s: got %s, want %s in JSON", accept, got, want)
		}
	}
	if got := a.want(t, 200, "GET", gadgets, "", "Accept", "application/cbor,application/json"+table); got[0] == '{' {
		t.Errorf("got %s, want CBOR, which the client prefers", got)
	}
	a.want(t, 406, "GET", gadgets, "", "Accept", "application/cbor"+table)
	for _, path := range []string{"/api", "/apis", "/apis/demo.example.com", "/apis/demo.example.com/v1", "/version"} {
		if got := a.want(t, 200, "GET", path, "", "Accept", "application/cbor, */*"); got[0] != '{' {
			t.Errorf("%s: got %q, want JSON", path, got)
		}
	}
	a.want(t, 406, "GET", "/apis/demo.example.com/v1", "", "Accept", "application/cbor")
}

func TestMemoryForExpandedBodiesIsCounted(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.Server.Limits.Memory = 64 << 10 })
	body := func(numbers byte) string {
		return "\xa2\x68metadata\xa1\x6cgenerateName\x61a\x61n\x99" + string([]byte{numbers, 0}) +
			strings.Repeat("\xf9\x00\x01", int(numbers)<<8)
	}
	a.want(t, 201, "POST", gadgets, body(1), "Content-Type", cborType)
	a.wantError(t, 429, "TooManyRequests", "POST", gadgets, body(8), "Content-Type", cborType)
}

func TestWatchesInCBOR(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", gadgets, `{"metadata":{"name":"a"},"n":18446744073709551616}`)
	res := a.do(t, "GET", gadgets+"?watch=true&timeoutSeconds=1&resourceVersion=0", "", "Accept", "application/cbor")
	body, err := io.ReadAll(res.Body)
	if err != nil || res.Header.Get("Content-Type") != "application/cbor-seq" {
		t.Fatalf("got %v and %s, want application/cbor-seq", err, res.Header.Get("Content-Type"))
	}
	event := fromCBOR[metav1.WatchEvent](t, string(body))
	var o anyObject
	if err := direct.Unmarshal(event.Object.Raw, &o); err != nil || event.Type != listwatch.Added.String() ||
		o["n"] != math.Pow(2, 64) {
		t.Errorf("got %s, %v and %v, want ADDED", event.Type, o, err)
	}
}
