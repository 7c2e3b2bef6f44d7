//go:build !race

package field

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"
)

// accepted are Accept headers. The relay must choose the same form as the kube-apiserver.
var accepted = []string{
	"", "*/*", "application/*", "application/json", protobufType, "application/yaml", "application/cbor", "text/html",
	protobufType + ",application/json", "application/json," + protobufType, protobufType + ";q=0.5,application/json",
	"application/json;q=0.5," + protobufType, "*/*," + protobufType, "*/*;q=0.1," + protobufType,
	"application/yaml," + protobufType, "application/yaml,application/json", "application/json,application/yaml",
	"text/html,application/xhtml+xml,*/*;q=0.8", protobufType + ";unknown=1", "application/json;unknown=1;q=0.9",
	protobufType + rows, protobufType + rows + ",application/json", "application/json" + rows,
	"application/json" + rows + "," + protobufType, protobufType + partial, "application/json" + partial,
	protobufType + partialList + ",application/json" + partialList + ",application/json",
	protobufType + partial + ",application/json" + partial + ",application/json",
	protobufType + ";stream=watch,application/json;stream=watch", protobufType + ";as=Nothing;g=meta.k8s.io;v=v1,*/*",
}

const (
	rows        = ";as=Table;g=meta.k8s.io;v=v1"
	partial     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	partialList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// differs reports whether the relay and the kube-apiserver differ. The kube-apiserver has no
// wildcard for the subtype, CBOR is off, and it has metadata of custom resources in Protobuf, for
// which the relay has no cache.
func differs(what, accept string) bool {
	isCustom, isWatch := strings.HasPrefix(what, "custom"), strings.HasSuffix(what, "watch")
	return accept == "application/*" || accept == "application/cbor" && isWatch ||
		isCustom && strings.HasPrefix(accept, protobufType+";as=PartialObjectMetadata")
}

// testAccept compares the forms of responses. The state is not the newest, so that caches respond.
func (c *cluster) testAccept(t *testing.T) {
	requests := map[string]string{
		"list":         "/api/v1/namespaces/default/pods?resourceVersion=0",
		"get":          "/api/v1/namespaces/default/pods/full?resourceVersion=0",
		"watch":        "/api/v1/namespaces/default/pods?watch=1&resourceVersion=0&timeoutSeconds=3",
		"custom list":  "/apis/accept.example.com/v1/widgets?resourceVersion=0",
		"custom watch": "/apis/accept.example.com/v1/widgets?watch=1&resourceVersion=0&timeoutSeconds=3",
	}
	c.createWidget(t)
	for what, path := range requests {
		each(accepted, requestsAtOnce, func(accept string) {
			if differs(what, accept) {
				return
			}
			if want, got := c.direct.formOf(t, path, accept), c.relayed.formOf(t, path, accept); got != want {
				t.Errorf("%s with Accept %q: the relay sends %s, want %s", what, accept, got, want)
			}
		})
	}
}

// createWidget creates a custom resource with one object, and waits until the relay knows it.
func (c *cluster) createWidget(t *testing.T) {
	t.Helper()
	definition := strings.ReplaceAll(widgetDefinition, "NAME", "accept")
	r := c.direct.send(t, http.MethodPost, definitionsPath, nil, "application/json", definition)
	if r.code != http.StatusCreated {
		t.Fatalf("%d %s", r.code, r.body)
	}
	const path = "/apis/accept.example.com/v1/namespaces/default/widgets"
	c.direct.await(t, path, "200")
	body := `{"apiVersion":"accept.example.com/v1","kind":"Widget","metadata":{"name":"one"}}`
	if r = c.direct.send(t, http.MethodPost, path, nil, "application/json", body); r.code != http.StatusCreated {
		t.Fatalf("%d %s", r.code, r.body)
	}
	eventually(t, "the relay has a cache of the widgets", func(context.Context) (bool, error) {
		answer := c.relayed.request(t, path+"?resourceVersion=0", "application/json")
		if answer == nil {
			return false, nil
		}
		answer.Body.Close()
		return answer.Header.Get("Audit-Id") == "", nil
	})
}

// request sends a GET. The caller must close the body.
func (e *endpoint) request(t *testing.T, path, accept string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.config.Host+path, nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		t.Errorf("%s: %v", e.name, err)
		return nil
	}
	return answer
}

// formOf returns the status of a response, its media type, and the kind of what it holds.
func (e *endpoint) formOf(t *testing.T, path, accept string) string {
	t.Helper()
	answer := e.request(t, path, accept)
	if answer == nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%s: %v", e.name, err)
	}
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.StatusCode) // of a Status, whose form has no meaning
	}
	kind := "objects"
	for _, k := range []string{"PartialObjectMetadata", "Table"} {
		if strings.Contains(string(body[:min(len(body), 200)]), k) {
			kind = k
		}
	}
	if mediaType == protobufType && strings.Contains(path, "watch") && len(body) > 4 {
		kind += fmt.Sprint(" of ", binary.BigEndian.Uint32([]byte(body[:4])), " bytes")
	}
	return fmt.Sprint(answer.StatusCode, " ", mediaType, " of ", kind)
}
