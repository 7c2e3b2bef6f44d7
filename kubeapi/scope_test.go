package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// Each user sees and writes only the objects whose label tenant is the name of the user.
func TestScopeRestrictsReadsAndWrites(t *testing.T) {
	calls := 0
	a := startServer(t, func(h *Handler) {
		h.Server.Access.Authenticator = authenticate(t)
		h.Scope = func(_ context.Context, u User, at Attributes) (scope listwatch.Selection, err error) {
			calls++
			if at.Resource.Plural == "pods" {
				return scope, errors.New("no")
			}
			scope.Labels, err = listwatch.LabelEquals("tenant", u.Name)
			return scope, err
		}
	})
	const token, other = "Bearer secret", "Bearer third" // of ada and eve
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","labels":{"tenant":"ada"}}}`
	a.wantError(t, 403, "Forbidden", "POST", configMaps, object, "Authorization", other)
	a.want(t, 201, "POST", configMaps, object, "Authorization", token)
	a.want(t, 200, "GET", configMaps+"/one", "", "Authorization", token)
	const merge = "application/merge-patch+json"
	a.wantError(t, 404, "NotFound", "GET", configMaps+"/one", "", "Authorization", other)
	a.wantError(t, 404, "NotFound", "PUT", configMaps+"/one", object, "Authorization", other)
	a.wantError(t, 404, "NotFound", "PATCH", configMaps+"/one", object, "Authorization", other, "Content-Type", merge)
	a.wantError(t, 404, "NotFound", "DELETE", configMaps+"/one", "", "Authorization", other)
	a.wantError(t, 403, "Forbidden", "PATCH", configMaps+"/one", `{"metadata":{"labels":null}}`, "Authorization", token,
		"Content-Type", merge)
	a.wantError(t, 403, "Forbidden", "GET", pods, "", "Authorization", token)
	a.want(t, 200, "DELETE", configMaps, "", "Authorization", other) // deletes nothing
	calls = 0
	list := a.want(t, 200, "GET", configMaps, "", "Authorization", other)
	if strings.Contains(list, "one") || calls != 1 {
		t.Errorf("got %s after %d calls of Scope, want no object of the other user after one", list, calls)
	}
	if list := a.want(t, 200, "GET", configMaps, "", "Authorization", token); !strings.Contains(list, "one") {
		t.Errorf("got %s, want the object", list)
	}
}

// The Admit of a collection sees the result of patches and of server-side apply.
func TestAdmitSeesPatchesAndApply(t *testing.T) {
	h := &Handler{}
	r := Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	spec := r.CollectionSpec()
	spec.Admit = func(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
		if bytes.Contains(data, []byte(`"bad"`)) {
			return nil, listwatch.Cause{Reason: listwatch.CauseInvalid, Field: "data", Message: "must not be bad"}
		}
		return bytes.Replace(data, []byte(`"auto"`), []byte(`"chosen"`), 1), nil
	}
	c, err := memory.Open(memory.Options{}).Collection(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(r, c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	a := &testServer{h, server.URL}
	if o := a.want(t, 201, "POST", configMaps, `{"metadata":{"name":"one"},"data":{"a":"auto"}}`); !strings.Contains(o,
		`"a":"chosen"`) {
		t.Errorf("got %s, want the default", o)
	}
	const bad = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"bad"}}`
	for _, query := range []string{"", "?dryRun=All"} {
		a.wantError(t, 422, "Invalid", "PATCH", configMaps+"/one"+query, bad, "Content-Type",
			"application/merge-patch+json")
		a.wantError(t, 422, "Invalid", "PUT", configMaps+"/one"+query, bad)
	}
	a.wantError(t, 422, "Invalid", "PATCH", configMaps+"/one?fieldManager=m&force=true", bad, "Content-Type",
		"application/apply-patch+yaml")
}
