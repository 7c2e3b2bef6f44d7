package kubeapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/watchserver"
)

func TestEachWriteIsReportedOnce(t *testing.T) {
	var changes, refused []string
	s := startServer(t, func(h *Handler) {
		h.Server.Trace = &watchserver.Trace{
			Changed: func(_ context.Context, c watchserver.Change) {
				text := c.Verb + " " + c.Resource.Group + "/" + c.Resource.Version + "/" + c.Resource.Name + " " +
					c.Key.String() + " as " + c.User
				if c.DryRun {
					text += " (dry run)"
				}
				if c.Version == 0 != (c.Verb == "deletecollection") {
					t.Errorf("%s: got version %v", text, c.Version)
				}
				changes = append(changes, text)
			},
			Refused: func(_ context.Context, r watchserver.Request, _ error) {
				refused = append(refused, r.Method+" "+r.Resource.Name)
			},
		}
	})
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/apis/demo.example.com/v1/gadgets", `{"metadata":{"name":"a"}}`, http.StatusCreated},
		{"POST", "/apis/demo.example.com/v1/gadgets", `{"metadata":{"name":"a"}}`, http.StatusConflict},
		{"PUT", "/apis/demo.example.com/v1/gadgets/a", `{"metadata":{"name":"a"},"x":1}`, http.StatusOK},
		{"PATCH", "/apis/demo.example.com/v1/gadgets/a?dryRun=All", `{"x":2}`, http.StatusOK},
		{"GET", "/apis/demo.example.com/v1/gadgets/a", "", http.StatusOK},
		{"DELETE", "/apis/demo.example.com/v1/gadgets/a", "", http.StatusOK},
		{"DELETE", "/apis/demo.example.com/v1/gadgets", "", http.StatusOK},
		{"DELETE", "/nothing", "", http.StatusNotFound},
	} {
		contentType := "application/json"
		if c.method == "PATCH" {
			contentType = "application/merge-patch+json"
		}
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", contentType)
		response := httptest.NewRecorder()
		s.ServeHTTP(response, r)
		if response.Code != c.status {
			t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, response.Code, response.Body, c.status)
		}
	}
	const resource, user = " demo.example.com/v1/gadgets ", " as system:anonymous"
	want := []string{
		"create" + resource + "a" + user, "update" + resource + "a" + user,
		"patch" + resource + "a" + user + " (dry run)",
		"delete" + resource + "a" + user, "deletecollection" + resource + user,
	}
	if !slices.Equal(changes, want) {
		t.Errorf("changes: got\n%s\nwant\n%s", strings.Join(changes, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"POST gadgets", "DELETE "}; !slices.Equal(refused, want) {
		t.Errorf("refusals: got %q, want %q", refused, want)
	}
}
