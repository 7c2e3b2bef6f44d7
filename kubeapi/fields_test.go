package kubeapi

import (
	"net/url"
	"strings"
	"testing"
)

func TestFieldsReduceReads(t *testing.T) {
	const (
		table   = "application/json;as=Table;v=v1;g=meta.k8s.io"
		partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	)
	a := startServer(t, nil)
	path, body := gadgets+"/x",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"size":1}}`
	a.applied(t, 201, path, "m", body)
	for _, c := range []struct{ path, fields, accept, want, without string }{
		{path, "spec", "application/json", `"spec":{"size":1}`, "labels"},
		{path, "-metadata.managedFields", "application/json", `"labels"`, "managedFields"},
		{path, "metadata.labels,spec", partial, `"labels":{"a":"b"}`, "managedFields"},
		{path, "metadata.labels", "application/cbor", `labels`, "managedFields"},
		{gadgets, "spec", "application/json", `"spec":{"size":1}`, "labels"},
		{
			gadgets, "metadata.labels", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
			`"labels":{"a":"b"}`, "managedFields",
		},
		{gadgets, "spec", "application/cbor", `spec`, "labels"},
	} {
		at := c.path + "?fields=" + url.QueryEscape(c.fields)
		resp := a.do(t, "GET", at, "", "Accept", c.accept)
		if got := resp.Header.Get("Listwatch-Fields"); got != c.fields {
			t.Errorf("%s: got the header %q, want %q", at, got, c.fields)
		}
		if got := a.want(t, 200, "GET", at, "", "Accept", c.accept); !strings.Contains(got, c.want) ||
			strings.Contains(got, c.without) || !strings.Contains(got, "resourceVersion") {
			t.Errorf("%s with Accept %s: got %q, want %s and no %s", at, c.accept, got, c.want, c.without)
		}
	}
	for _, at := range []string{path, gadgets, gadgets + "?watch=1"} {
		at += map[bool]string{true: "&", false: "?"}[strings.Contains(at, "?")] + "fields="
		a.wantError(t, 400, "BadRequest", "GET", at+"spec", "", "Accept", table)
		a.wantError(t, 400, "BadRequest", "GET", at+"-kind", "")
		a.want(t, 406, "GET", at+"spec", "", "Accept", "image/png")
	}
}

func TestFieldsAreRefusedInWrites(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", gadgets, object("x"))
	for method, at := range map[string]string{
		"POST": gadgets, "PUT": gadgets + "/x", "PATCH": gadgets + "/x", "DELETE": gadgets + "/x",
	} {
		s := a.wantError(t, 400, "BadRequest", method, at+"?fields=spec", object("x"), "Content-Type", mergePatchType)
		if !strings.Contains(s.Message, "fields: not allowed with "+method) {
			t.Errorf("%s: got %q, want the reason", method, s.Message)
		}
	}
	a.wantError(t, 400, "BadRequest", "DELETE", gadgets+"?fields=spec", "")
	a.want(t, 200, "GET", gadgets+"/x", "")
}

func TestMetadataWatchWithFieldsOmitsChanges(t *testing.T) {
	a := startServer(t, nil)
	path := gadgets + "/x"
	body := func(label, size string) string {
		return `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x","labels":{"a":"` + label +
			`"}},"spec":{"size":` + size + `}}`
	}
	version := metadata(t, a.applied(t, 201, path, "m", body("b", "1"))).ResourceVersion
	next := a.watch(t, gadgets+"?watch=1&fields=metadata.labels&resourceVersion="+version,
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	a.applied(t, 200, path, "m", body("b", "2"))
	a.applied(t, 200, path, "m", body("c", "2"))
	kind, object := next()
	if got := string(object); kind != "MODIFIED" || !strings.Contains(got, `"labels":{"a":"c"}`) ||
		strings.Contains(got, "managedFields") || !strings.Contains(got, "PartialObjectMetadata") {
		t.Errorf("got %s %s, want only the change of the label", kind, got)
	}
}
