package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/tokenfile"
	"github.com/listwatch/listwatch/store"
	"k8s.io/client-go/rest"
)

const podsPath = "/api/v1/namespaces/default/pods"

// storePods writes the pods of a server in namespace default, directly to the store.
type storePods struct {
	*store.Collection
	t *testing.T
}

func podsInStore(t *testing.T, s *testapi.Server) storePods {
	return storePods{s.Collection("pods"), t}
}

func (p storePods) create(name string) (version string) {
	p.t.Helper()
	o, err := p.CreateIn(p.t.Context(), "default", []byte(`{"metadata":{"name":"`+name+`"}}`))
	return p.version(o, err)
}

// update changes a pod and returns its new version.
func (p storePods) update(name string) (version string) {
	p.t.Helper()
	key := listwatch.Key{Namespace: "default", Name: name}
	o, err := p.Update(p.t.Context(), key, listwatch.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		return fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default"},"after":%q}`, name, old.Version), nil
	})
	return p.version(o, err)
}

func (p storePods) delete(name string) (version string) {
	p.t.Helper()
	o, err := p.Delete(p.t.Context(), listwatch.Key{Namespace: "default", Name: name}, listwatch.Preconditions{})
	return p.version(o, err)
}

func (p storePods) version(o *listwatch.Object, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return o.Version.String()
}

// runWatchScript runs watch.mjs on the pods.
func runWatchScript(t *testing.T, c *rest.Config, params map[string]any) *runningScript {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return runScript(t, c, "watch.mjs", podsPath, string(text))
}

func TestNodeWatchResumes(t *testing.T) {
	// Over TLS, client-node uses HTTP/2.
	for p, major := range map[testapi.Protocol]int{testapi.HTTP1: 1, testapi.HTTP2: 2} {
		t.Run(string(p), func(t *testing.T) {
			s := testapi.Start(t)
			s.API.Server.Access.Authenticator = func(r *http.Request) (kubeapi.User, error) {
				if r.ProtoMajor != major {
					t.Errorf("the client uses %s, want %s", r.Proto, p)
				}
				return kubeapi.Anonymous(), nil
			}
			pods := podsInStore(t, s)
			a := pods.create("a")
			first := runWatchScript(t, s.Config(p), map[string]any{"resourceVersion": a})
			b := pods.create("b")
			first.wantLines(scriptLine{On: "ADDED", Name: "b", Version: b})
			changed, deleted := pods.update("a"), pods.delete("b")
			first.wantLines(scriptLine{On: "MODIFIED", Name: "a", Version: changed},
				scriptLine{On: "DELETED", Name: "b", Version: deleted})

			s.Cut()
			if end := first.nextLine(); end.On != "done" || end.Clean {
				t.Fatalf("got %+v after the connection was cut, want an error", end)
			}
			c := pods.create("c")
			second := runWatchScript(t, s.Config(p), map[string]any{"resourceVersion": changed})
			second.wantLines(scriptLine{On: "DELETED", Name: "b", Version: deleted},
				scriptLine{On: "ADDED", Name: "c", Version: c})
			s.Drain()
			second.wantLines(scriptLine{On: "done", Clean: true})
		})
	}
}

func TestNodeWatchSeesBookmarks(t *testing.T) {
	s := testapi.Start(t)
	pods := podsInStore(t, s)
	a, b := pods.create("a"), pods.create("b")
	w := runWatchScript(t, s.Config(testapi.HTTP1), map[string]any{
		"sendInitialEvents": true, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": true,
	})
	w.wantLines(scriptLine{On: "ADDED", Name: "a", Version: a}, scriptLine{On: "ADDED", Name: "b", Version: b})
	if got := w.nextLine(); got.On != "BOOKMARK" || got.Version != b ||
		got.Annotations["k8s.io/initial-events-end"] != "true" {
		t.Errorf("got %+v, want the bookmark after the initial events, at version %s", got, b)
	}
	c := pods.create("c")
	w.wantLines(scriptLine{On: "ADDED", Name: "c", Version: c})
	s.Drain()
	w.wantLines(scriptLine{On: "BOOKMARK", Version: c}, scriptLine{On: "done", Clean: true})
}

func TestNodeWatchOfACompactedVersionExpires(t *testing.T) {
	s := testapi.Start(t)
	pods := podsInStore(t, s)
	a := pods.create("a")
	pods.update("a")
	s.DB.Compact()
	w := runWatchScript(t, s.Config(testapi.HTTP1), map[string]any{"resourceVersion": a})
	w.wantLines(scriptLine{On: "ERROR", Code: http.StatusGone, Reason: "Expired"}, scriptLine{On: "done", Clean: true})
}

func TestNodeWatchReportsARefusal(t *testing.T) {
	s := testapi.Start(t)
	w := runWatchScript(t, s.Config(testapi.HTTP1), map[string]any{"labelSelector": "="})
	w.wantLines(scriptLine{On: "done", Code: http.StatusBadRequest})
}

func TestNodeAuthenticates(t *testing.T) {
	s := testapi.Start(t, "widgets.v1.demo.example.com=Widget")
	tokens, err := tokenfile.Read(strings.NewReader("secret,alice,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.API.Server.Access.Authenticator = tokens.Authenticate
	c := s.Config(testapi.HTTP2)
	c.BearerToken = "wrong"
	runWatchScript(t, c, nil).wantLines(scriptLine{On: "done", Code: http.StatusUnauthorized})
	runScript(t, c, "crud.mjs").wantLines(scriptLine{On: "create pod", Code: http.StatusUnauthorized})
	c.BearerToken = "secret"
	runScript(t, c, "crud.mjs").wantLines(scriptLine{On: "create pod"})
	z := podsInStore(t, s).create("z")
	if got := runWatchScript(t, c, map[string]any{"fieldSelector": "metadata.name=z"}).nextLine(); got.On != "ADDED" ||
		got.Version != z {
		t.Errorf("got %+v, want the pod", got)
	}
}
