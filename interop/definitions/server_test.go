//go:build !race

package definitions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// A server is an API server.
type server struct {
	name   string
	url    string
	client *http.Client
}

func newServer(t *testing.T, name string, c *rest.Config) *server {
	t.Helper()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return &server{name, c.Host, client}
}

// send sends a request. It returns the status and the decoded response.
func (s *server) send(t *testing.T, method, path, contentType, accept string, body any) (int, map[string]any) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept", accept)
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		o = map[string]any{"text": string(data)}
	}
	return answer.StatusCode, o
}

const (
	asJSON          = "application/json"
	asTable         = "application/json;as=Table;v=v1;g=meta.k8s.io"
	applyPatch      = "application/apply-patch+yaml"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// pathOf returns the path of the collection of an object.
func (r resource) pathOf(o *unstructured.Unstructured) string {
	path := "/apis/" + r.apiVersion()
	if o.GetNamespace() != "" {
		path += "/namespaces/" + o.GetNamespace()
	}
	return path + "/" + r.plural
}

// unknownFields is the outcome of a write that is refused because of unknown fields.
const unknownFields = "refused because of unknown fields"

// outcome describes the response to a write: the object that the server stored, or the status and
// its causes.
func outcome(code int, o map[string]any) string {
	message := fmt.Sprint(o["message"])
	switch {
	// docs/kubernetes.md lists these refusals, for which Kubernetes has no better status than 500.
	case code == 500 && strings.HasPrefix(message, "failed to create typed patch object"), code == 400 &&
		strings.HasSuffix(message, ": field not declared in schema"):
		return unknownFields
	case code/100 != 2:
		lines := []string{}
		details, _ := o["details"].(map[string]any)
		causes, _ := details["causes"].([]any)
		for _, cause := range causes {
			c, _ := cause.(map[string]any)
			lines = append(lines, fmt.Sprint(c["reason"], " ", c["field"], ": ", c["message"]))
		}
		if len(causes) == 0 {
			lines = append(lines, message)
		}
		slices.Sort(lines)
		return fmt.Sprint(code, " ", strings.Join(slices.Compact(lines), "\n"))
	}
	m, _ := o["metadata"].(map[string]any)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(m, name)
	}
	text, _ := json.MarshalIndent(o, "", " ") // decoded JSON can be encoded
	return fmt.Sprint(code, " ", string(text))
}

// ages matches a cell with an age.
var ages = regexp.MustCompile(`^([0-9]+[smhd])+$`)

// table requests an object as a table. It returns the columns and the cells.
func (s *server) table(t *testing.T, path string) string {
	t.Helper()
	code, o := s.send(t, http.MethodGet, path, "", asTable, nil)
	rows, _ := o["rows"].([]any)
	var cells []any
	for _, row := range rows {
		r, _ := row.(map[string]any)
		c, _ := r["cells"].([]any)
		for i := range c {
			if text, ok := c[i].(string); ok && ages.MatchString(text) {
				c[i] = "AGE"
			}
		}
		cells = append(cells, c)
	}
	columns, _ := o["columnDefinitions"].([]any)
	for i, column := range columns {
		c, _ := column.(map[string]any)
		// These columns are not from the definition, and kubetest has descriptions of its own.
		if i == 0 || len(columns) == 2 && c["name"] == "Age" {
			delete(c, "description")
		}
	}
	// Decoded JSON can be encoded.
	text, _ := json.MarshalIndent([]any{columns, cells}, "", " ")
	return fmt.Sprint(code, " ", string(text))
}

// created is the result of the attempt to create a sample at a server.
type created struct {
	Create, Table, First, Second string

	Rewritten bool // the second apply has written the object again
}

// try creates a sample, requests it as a table, and applies another object like it twice.
func (s *server) try(t *testing.T, r resource, sample *unstructured.Unstructured) (c created) {
	t.Helper()
	path := r.pathOf(sample)
	code, o := s.send(t, http.MethodPost, path+"?fieldValidation=Ignore", asJSON, asJSON, sample.Object)
	c.Create = outcome(code, o)
	if code != http.StatusCreated {
		return c
	}
	c.Table = s.table(t, path+"/"+sample.GetName())
	applied := sample.DeepCopy()
	applied.SetName(sample.GetName() + "-applied")
	applied.SetResourceVersion("")
	applied.SetManagedFields(nil)
	var versions [2]string
	for i, result := range []*string{&c.First, &c.Second} {
		code, o := s.send(t, http.MethodPatch, path+"/"+applied.GetName()+"?fieldManager=tester", applyPatch, asJSON,
			applied.Object)
		versions[i], _, _ = unstructured.NestedString(o, "metadata", "resourceVersion")
		*result = outcome(code, o)
	}
	c.Rewritten = versions[0] != versions[1]
	return c
}
