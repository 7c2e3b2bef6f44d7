package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	"k8s.io/client-go/rest"
)

const podsPath = "/api/v1/namespaces/default/pods"

// pods are those of a server, in namespace default, as tests write them.
type pods struct {
	*store.Collection
	t *testing.T
}

func podsOf(t *testing.T, s *kubetest.Server) pods { return pods{s.Collection("pods"), t} }

func (p pods) create(name string) (version string) {
	p.t.Helper()
	o, err := p.CreateIn(p.t.Context(), "default", []byte(`{"metadata":{"name":"`+name+`"}}`))
	return p.done(o, err)
}

// touch updates a pod.
func (p pods) touch(name string) (version string) {
	p.t.Helper()
	key := listwatch.Key{Namespace: "default", Name: name}
	o, err := p.Update(p.t.Context(), key, store.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		return fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default"},"after":%q}`, name, old.Version), nil
	})
	return p.done(o, err)
}

func (p pods) delete(name string) (version string) {
	p.t.Helper()
	o, err := p.Delete(p.t.Context(), listwatch.Key{Namespace: "default", Name: name}, store.Preconditions{})
	return p.done(o, err)
}

func (p pods) done(o *listwatch.Object, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return o.Version.String()
}

// watch runs watch.mjs on the pods.
func watch(t *testing.T, c *rest.Config, params map[string]any) *script {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, c, "watch.mjs", podsPath, string(text))
}

func TestWatchTellsEveryEventInOrderAndResumes(t *testing.T) {
	// Over TLS client-node offers HTTP/2, and takes it.
	for p, major := range map[kubetest.Protocol]int{kubetest.HTTP1: 1, kubetest.HTTP2: 2} {
		t.Run(string(p), func(t *testing.T) {
			s := kubetest.Start(t)
			s.API.Authenticate = func(r *http.Request) (kubeapi.User, error) {
				if r.ProtoMajor != major {
					t.Errorf("the client speaks %s, want %s", r.Proto, p)
				}
				return kubeapi.Anonymous(), nil
			}
			pods := podsOf(t, s)
			a := pods.create("a")
			first := watch(t, s.Config(p), map[string]any{"resourceVersion": a})
			b := pods.create("b")
			first.wants(line{On: "ADDED", Name: "b", Version: b})
			changed, deleted := pods.touch("a"), pods.delete("b")
			first.wants(line{On: "MODIFIED", Name: "a", Version: changed}, line{On: "DELETED", Name: "b", Version: deleted})

			s.Cut()
			if end := first.next(); end.On != "done" || end.Clean {
				t.Fatalf("got %+v of a connection that was cut, want an error", end)
			}
			c := pods.create("c")
			second := watch(t, s.Config(p), map[string]any{"resourceVersion": changed})
			second.wants(line{On: "DELETED", Name: "b", Version: deleted}, line{On: "ADDED", Name: "c", Version: c})
			s.Drain()
			second.wants(line{On: "done", Clean: true})
		})
	}
}

func TestWatchSeesTheEndOfTheInitialEventsAndABookmarkAtTheEnd(t *testing.T) {
	s := kubetest.Start(t)
	pods := podsOf(t, s)
	a, b := pods.create("a"), pods.create("b")
	w := watch(t, s.Config(kubetest.HTTP1), map[string]any{
		"sendInitialEvents": true, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": true,
	})
	w.wants(line{On: "ADDED", Name: "a", Version: a}, line{On: "ADDED", Name: "b", Version: b})
	if got := w.next(); got.On != "BOOKMARK" || got.Version != b || got.Annotations["k8s.io/initial-events-end"] != "true" {
		t.Errorf("got %+v, want the bookmark behind the initial events, of version %s", got, b)
	}
	c := pods.create("c")
	w.wants(line{On: "ADDED", Name: "c", Version: c})
	s.Drain()
	w.wants(line{On: "BOOKMARK", Version: c}, line{On: "done", Clean: true})
}

func TestWatchOfAVersionThatIsGoneIsToldSo(t *testing.T) {
	s := kubetest.Start(t)
	pods := podsOf(t, s)
	a := pods.create("a")
	pods.touch("a")
	s.DB.Compact()
	w := watch(t, s.Config(kubetest.HTTP1), map[string]any{"resourceVersion": a})
	w.wants(line{On: "ERROR", Code: http.StatusGone, Reason: "Expired"}, line{On: "done", Clean: true})
}

func TestWatchThatIsRefusedShowsTheCode(t *testing.T) {
	s := kubetest.Start(t)
	w := watch(t, s.Config(kubetest.HTTP1), map[string]any{"labelSelector": "="})
	w.wants(line{On: "done", Code: http.StatusBadRequest})
}

func TestTokensAreAsked(t *testing.T) {
	s := kubetest.Start(t, "widgets.v1.demo.example.com=Widget")
	tokens, err := kubeapi.ReadTokens(strings.NewReader("secret,alice,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.API.Authenticate = tokens.Authenticate
	c := s.Config(kubetest.HTTP2)
	c.BearerToken = "wrong"
	watch(t, c, nil).wants(line{On: "done", Code: http.StatusUnauthorized})
	run(t, c, "crud.mjs").wants(line{On: "create pod", Code: http.StatusUnauthorized})
	c.BearerToken = "secret"
	run(t, c, "crud.mjs").wants(line{On: "create pod"})
	z := podsOf(t, s).create("z")
	if got := watch(t, c, map[string]any{"fieldSelector": "metadata.name=z"}).next(); got.On != "ADDED" || got.Version != z {
		t.Errorf("got %+v, want the pod", got)
	}
}
