package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
)

func unionOf(query string, urls ...string) string {
	for _, of := range urls {
		query += "&of=" + url.QueryEscape(of)
	}
	return UnionPath + "?" + query
}

// Each part of a union has the verb, the rights and the scope of its own path.
func TestUnionAsksForTheRightsOfEachPart(t *testing.T) {
	var mu sync.Mutex // Recheck asks for the rights of several watches at once
	var asked []string
	denied, tenant := "", "ada"
	a := startServer(t, func(h *Handler) {
		h.Server.Access.Authenticator = authenticate(t)
		h.Authorize = func(_ context.Context, u User, at Attributes) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, u.Name+" "+at.Verb+" "+at.Resource.Plural+" "+at.Namespace+" "+at.Name)
			if at.Resource.Plural == denied {
				return errors.New("no")
			}
			return nil
		}
		h.Scope = func(_ context.Context, _ User, at Attributes) (scope listwatch.Selection, err error) {
			if at.Resource.Plural == "configmaps" {
				scope.Labels, err = listwatch.LabelEquals("tenant", tenant)
			}
			return scope, err
		}
	})
	const token = "Bearer secret"
	a.want(t, 201, "POST", configMaps, `{"metadata":{"name":"one","labels":{"tenant":"ada"}}}`, "Authorization", token)
	a.want(t, 201, "POST", pods, object("two"), "Authorization", token)
	asked = nil
	list := unionOf("", configMaps, "/api/v1/pods?fieldSelector=metadata.name=two", "/apis/demo.example.com/v1/gadgets")
	if body := a.want(t, 200, "GET", list, "", "Authorization", token); !strings.Contains(body, `"one"`) ||
		!strings.Contains(body, `"two"`) {
		t.Errorf("got %s, want both objects", body)
	}
	want := []string{"ada list configmaps default ", "ada list pods  two", "ada list gadgets  "}
	if !slices.Equal(asked, want) {
		t.Errorf("got %q, want %q", asked, want)
	}
	watch := unionOf("watch=1", pods, configMaps)
	w := a.do(t, "GET", watch, "", "Authorization", token)
	if asked = asked[3:]; w.StatusCode != 200 ||
		!slices.Equal(asked, []string{"ada watch pods default ", "ada watch configmaps default "}) {
		t.Errorf("got %d after %q", w.StatusCode, asked)
	}
	a.wantError(t, 401, "Unauthorized", "GET", watch, "")
	denied = "configmaps"
	if s := a.wantError(t, 403, "Forbidden", "GET", watch, "", "Authorization", token); !strings.Contains(s.Message,
		`cannot watch resource "configmaps"`) {
		t.Errorf("got %s, want the message of the part", s.Message)
	}
	wantEnd := func(w *http.Response, code string) {
		t.Helper()
		a.Server.Recheck()
		if body, err := io.ReadAll(w.Body); err != nil || !strings.Contains(string(body), `"code":`+code) {
			t.Errorf("got %s, %v; want an ERROR event with code %s", body, err, code)
		}
	}
	wantEnd(w, "403")
	denied = ""
	w = a.do(t, "GET", watch, "", "Authorization", token)
	tenant = "eve"
	wantEnd(w, "410")
}

func TestUnionOfUnknownResourcesIsRefused(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	for of, code := range map[string]int{
		"/api/v1/unknown": 404, pods + "/one": 400, "/healthz": 400, "/api": 400, pods + "/one/status": 400,
		"/api/v1/pods?fieldSelector=spec.unknown=a": 400,
	} {
		a.want(t, code, "GET", unionOf("", "/api/v1/namespaces", of), "")
	}
	a.want(t, 405, "POST", unionOf("", pods), "")
	a.want(t, 406, "GET", unionOf("", pods), "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	got := a.events(t, unionOf("watch=1", pods, "/api/v1/namespaces"), 1)
	if len(got) != 1 || !strings.Contains(got[0], "one") {
		t.Errorf("got %q, want the pod", got)
	}
}
