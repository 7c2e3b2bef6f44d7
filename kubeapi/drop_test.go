package kubeapi

import (
	"strings"
	"testing"
)

// Kubernetes enhancement proposal 5958.
func TestDropManagedFields(t *testing.T) {
	const (
		dropped = "application/json;drop=metadata.managedFields"
		table   = ";as=Table;v=v1;g=meta.k8s.io"
		partial = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	)
	a := startServer(t, nil)
	path, body := gadgets+"/x",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x","labels":{"a":"b"}}}`
	a.applied(t, 201, path, "m", body)
	for _, c := range []struct {
		method, path, accept string
		want                 bool // managedFields are part of the response
	}{
		{"GET", path, "application/json", true},
		{"GET", path, dropped, false},
		{"GET", path, "application/json;drop=status+metadata.managedFields", false},
		{"GET", path, "application/json;drop=status", true},
		{"GET", path, dropped + partial, false},
		{"GET", path, "application/json" + partial, true},
		{"GET", path, "application/vnd.kubernetes.protobuf;drop=metadata.managedFields," + dropped, false},
		{"GET", path, "application/cbor;drop=metadata.managedFields", false},
		{"GET", gadgets, dropped, false},
		{"GET", gadgets, "application/json", true},
		{"GET", gadgets + "?includeObject=Object", dropped + table, false},
		{"GET", gadgets, "application/cbor;drop=metadata.managedFields", false},
		{"PATCH", path, dropped, false},
		{"PUT", path, dropped, false},
		{"DELETE", path + "?dryRun=All", dropped, false},
	} {
		send, contentType := "", "application/json"
		switch c.method {
		case "PATCH":
			send, contentType = `{"metadata":{"labels":{"c":"d"}}}`, mergePatchType
		case "PUT":
			send = body
		}
		code := 200
		got := a.want(t, code, c.method, c.path, send, "Accept", c.accept, "Content-Type", contentType)
		if strings.Contains(got, "managedFields") != c.want || !strings.Contains(got, "name") {
			t.Errorf("%s %s with Accept %s: got %q, want managedFields: %t", c.method, c.path, c.accept, got, c.want)
		}
	}
	if got := a.want(t, 200, "GET", path, ""); !strings.Contains(got, "managedFields") {
		t.Errorf("got %s: a PUT without managedFields must keep them", got)
	}
}

func TestDropStillSendsEachEvent(t *testing.T) {
	a := startServer(t, nil)
	path, body := gadgets+"/x",
		`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"x","labels":{"a":"b"}}}`
	version := metadata(t, a.applied(t, 201, path, "m", body)).ResourceVersion
	next := a.watch(t, gadgets+"?watch=1&resourceVersion="+version, "application/json;drop=metadata.managedFields")
	a.applied(t, 200, path, "other", body) // changes only managedFields
	if kind, object := next(); kind != "MODIFIED" || strings.Contains(string(object), "managedFields") {
		t.Errorf("got %s %s, want MODIFIED without managedFields", kind, object)
	}
}
