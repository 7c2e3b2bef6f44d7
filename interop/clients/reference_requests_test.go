//go:build !race

package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
)

// A rawRequest is a request for a widget. It may be a request that kubectl and client-go never
// send.
type rawRequest struct{ method, query, contentType, body string }

// send sends the request and returns the code and the reason of the response.
func (r rawRequest) send(t *testing.T, server, name string) string {
	t.Helper()
	url := server + "/apis/demo.example.com/v1/namespaces/n/widgets"
	if r.method != http.MethodPost {
		url += "/" + name
	}
	q := testkit.Must(http.NewRequestWithContext(t.Context(), r.method, url+r.query,
		strings.NewReader(strings.ReplaceAll(r.body, "NAME", name))))(t)
	q.Header.Set("Content-Type", r.contentType)
	res := testkit.Must(http.DefaultClient.Do(q))(t)
	defer res.Body.Close()
	var status struct{ Reason string }
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, status.Reason)
}

func TestRefusalsHaveTheCodesOfKubernetes(t *testing.T) {
	t.Parallel()
	const (
		object    = "application/json"
		jsonPatch = "application/json-patch+json"
		merge     = "application/merge-patch+json"
		strategic = "application/strategic-merge-patch+json"
		apply     = "application/apply-patch+yaml"
		head      = `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"name":"NAME"},`
		strict    = "?fieldValidation=Strict"
	)
	definitions := writeDefinitions(t)
	reference := startReference(t, definitions).server()
	ours := startProgram(t, "--crd", definitions)[0]
	for i, r := range []rawRequest{
		{"PATCH", strict, merge, `{"spec":{"color":"red","color":"blue"}}`},
		{"PATCH", strict, jsonPatch, `[{"op":"add","path":"/spec/color","value":"red","value":"blue"}]`},
		{"PATCH", strict, merge, `{"spec":{"colour":"red"}}`},
		{
			"PATCH", strict + "&fieldManager=a&force=true", apply,
			head + `"spec":{"color":"red","color":"blue","size":1}}`,
		},
		{"PUT", strict, object, head + `"spec":{"color":"red","color":"blue","size":1}}`},
		{
			"POST", strict, object,
			strings.Replace(head, "NAME", "new", 1) + `"spec":{"color":"red","colour":"blue","size":1}}`,
		},
		{"PATCH", "", merge, `{"spec":{"color":"red","color":"blue"}}`},
		{"PATCH", "", jsonPatch, `[{"op":"frob","path":"/a"}]`},
		{"PATCH", "", jsonPatch, `[{"op":"test","path":"/spec/color","value":"pink"}]`},
		{"PATCH", "", strategic, `{"spec":{"color":"blue"}}`},
		{"PATCH", "", merge, `{"spec":{"color":"pink"}}`},
		{"PATCH", "", merge, `{"spec":{"replicas":"1"}}`},
		{"PATCH", "", merge, `{"metadata":{"uid":"other"}}`},
		{"PATCH", "", apply, head + `"spec":{"color":"red","size":1}}`},
		{"PATCH", "?fieldManager=a", apply, head + `"spec":{"color":"green","size":1}}`},
		{"PATCH", "?fieldManager=a&dryRun=", merge, `{"spec":{"color":"blue"}}`},
		{"PUT", "", object, head + `"spec":{"color":"blue","size":1}}`},
		{"PUT", "", object, strings.Replace(head, `"NAME"`, `"NAME","resourceVersion":"1"`, 1) +
			`"spec":{"color":"blue","size":1}}`},
		{"GET", "", "", ""},
		{"DELETE", "?propagationPolicy=Bad", object, ""},
		{"DELETE", "", object, `{"preconditions":{"uid":"other"}}`},
		{"DELETE", "", object, ""},
	} {
		name := fmt.Sprintf("w%d", i)
		create := rawRequest{"POST", "", object, head + `"spec":{"color":"red","size":1}}`}
		create.send(t, reference, name)
		create.send(t, ours, name)
		if want, got := r.send(t, reference, name), r.send(t, ours, name); got != want {
			t.Errorf("%+v: got %s, Kubernetes responds with %s", r, got, want)
		}
	}
}
