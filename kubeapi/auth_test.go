package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/tokenfile"
	"github.com/listwatch/listwatch/watchserver"
)

// authenticate returns an Authenticator for three users.
func authenticate(t *testing.T) watchserver.Authenticator {
	t.Helper()
	return testkit.Must(
		tokenfile.Read(strings.NewReader("secret,ada,1\n\"to,ken\",bob,2\nthird,eve,\n")))(t).Authenticate
}

func TestRequestsNeedCredentials(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.Server.Access.Authenticator = authenticate(t) })
	upgrade := []string{
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key",
		"dGhlIHNhbXBsZSBub25jZQ==",
	}
	for _, path := range []string{"/", "/nope", pods, pods + "?watch=1", "/api/v1/watch/pods"} {
		for _, header := range [][]string{
			nil, upgrade,
			{"Authorization", "Bearer wrong"},
			{"Authorization", "Basic c2VjcmV0"},
		} {
			a.wantError(t, 401, "Unauthorized", "GET", path, "", header...)
			if got := a.do(t, "GET", path, "", header...).Header.Get("WWW-Authenticate"); !strings.HasPrefix(got,
				"Bearer") {
				t.Errorf("got WWW-Authenticate %q, want Bearer", got)
			}
		}
	}
	a.want(t, 200, "GET", pods, "", "Authorization", "Bearer secret")
	offer := "v1, base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("secret"))
	res := a.do(t, "GET", pods+"?watch=1", "", append(upgrade, "Sec-WebSocket-Protocol", offer)...)
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Protocol") != "v1" {
		t.Errorf("got %d %v, want an upgrade with only v1 echoed", res.StatusCode, res.Header)
	}
}

func TestClientCertificateIdentifiesUser(t *testing.T) {
	verified := func(name pkix.Name) *http.Request {
		return &http.Request{TLS: &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: name}}}}}
	}
	got, err := ClientCertificate(verified(pkix.Name{CommonName: "ada", Organization: []string{"admins"}}))
	if diff := cmp.Diff(User{Name: "ada", Groups: []string{"admins"}}, got); err != nil || diff != "" {
		t.Errorf("got %v %s", err, diff)
	}
	for _, r := range []*http.Request{
		{},
		{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "liar"}}}}},
	} {
		if got, err := ClientCertificate(r); err != nil || got.Name != "" {
			t.Errorf("got %v, error %v; want no user", got, err)
		}
	}
	if _, err := ClientCertificate(verified(pkix.Name{})); !errors.Is(err, listwatch.Unauthorized) {
		t.Errorf("certificate without a name: got %v, want Unauthorized", err)
	}
}

func TestDeniedRequestsAreForbidden(t *testing.T) {
	var requests []Attributes
	a := startServer(t, func(h *Handler) {
		h.Server.Access.Authenticator = authenticate(t)
		h.Authorize = func(_ context.Context, u User, at Attributes) error {
			requests = append(requests, at)
			if u.Name == "eve" {
				return listwatch.Cause{Message: "eve only listens"}
			}
			return nil
		}
	})
	s := a.wantError(t, 403, "Forbidden", "DELETE", pods+"/one", "", "Authorization", "Bearer third")
	const want = `pods "one" is forbidden: User "eve" cannot delete resource "pods" in API group "" in the namespace "default": eve only listens`
	if s.Message != want {
		t.Errorf("got %s, want %s", s.Message, want)
	}
	a.want(t, 200, "GET", "/api/v1/pods?watch=False", "", "Authorization", "Bearer secret")
	a.wantError(t, 403, "Forbidden", "GET", pods+"?watch=1", "", "Authorization", "Bearer third")
	a.wantError(t, 403, "Forbidden", "GET", "/api/v1/watch/namespaces/default/pods", "", "Authorization",
		"Bearer third")
	var verbs []string
	for _, at := range requests {
		verbs = append(verbs, at.Verb+" "+at.Resource.Plural+" "+at.Namespace+" "+at.Name)
	}
	if diff := cmp.Diff([]string{
		"delete pods default one", "list pods  ", "watch pods default ",
		"watch pods default ",
	}, verbs); diff != "" {
		t.Error(diff)
	}
}

func TestListOfOneNameIsAuthorizedByName(t *testing.T) {
	a := startServer(t, func(h *Handler) {
		h.Authorize = func(_ context.Context, _ User, at Attributes) error {
			if at.Name == "one" {
				return nil
			}
			return listwatch.Cause{Message: "only one"}
		}
	})
	const named = "fieldSelector=metadata.name%3Done"
	a.want(t, 200, "GET", pods+"?"+named, "")
	a.want(t, 200, "GET",
		pods+"?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"+named, "")
	for _, other := range []string{
		"", "?fieldSelector=metadata.name%3Dtwo", "?fieldSelector=metadata.name!%3Done",
		"?fieldSelector=%3D", "?" + named + ";",
	} {
		a.wantError(t, 403, "Forbidden", "GET", pods+other, "")
	}
	a.wantError(t, 403, "Forbidden", "DELETE", pods+"?"+named, "")
}

func TestForbiddenMessageNamesSubresource(t *testing.T) {
	a := startServer(t, func(h *Handler) {
		h.Authorize = func(context.Context, User, Attributes) error { return listwatch.Cause{Message: "look only"} }
	})
	const want = `deployments.apps "web" is forbidden: User "system:anonymous" cannot patch resource "deployments/scale" ` +
		`in API group "apps" in the namespace "default": look only`
	if s := a.wantError(t, 403, "Forbidden", "PATCH", deployments+"/web/scale", ""); s.Message != want {
		t.Errorf("got %s, want %s", s.Message, want)
	}
}

func TestAccessReviewTellsWhatAuthorizerSays(t *testing.T) {
	var asked Attributes
	a := startServer(t, func(h *Handler) {
		h.Server.Access.Authenticator = authenticate(t)
		h.Authorize = func(_ context.Context, u User, at Attributes) error {
			asked = at
			switch {
			case u.Name == "eve":
				return listwatch.Cause{Message: "eve only listens"}
			case u.Name == "bob":
				return &listwatch.Error{Code: listwatch.Unavailable, Message: "ask later"}
			}
			return nil
		}
	})
	const path, secret, third = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "Bearer secret",
		"Bearer third"
	for _, c := range []struct {
		spec, token string
		want        bool
		asked       string // "VERB GROUP/RESOURCE/SUBRESOURCE NAMESPACE NAME PATH", or empty
	}{
		{
			`"resourceAttributes":{"namespace":"team","verb":"patch","group":"apps","resource":"deployments","subresource":"status","name":"one"}`, secret, true, "patch apps/deployments/status team one ",
		},
		{`"resourceAttributes":{"verb":"get","version":"*","resource":"pods"}`, third, false, "get /pods/   "},
		{`"resourceAttributes":{"verb":"*","group":"*","resource":"*"}`, third, false, "* */*/   "},
		{
			`"resourceAttributes":{"verb":"create","group":"authorization.k8s.io","resource":"selfsubjectaccessreviews"}`,
			third, true, "",
		},
		{`"nonResourceAttributes":{"path":"/metrics","verb":"get"}`, third, false, "get //   /metrics"},
		{`"nonResourceAttributes":{"path":"/metrics","verb":"get"}`, secret, true, "get //   /metrics"},
		{`"nonResourceAttributes":{"path":"/healthz","verb":"post"}`, third, false, "post //   /healthz"},
		{
			`"nonResourceAttributes":{"path":"/apis/apps/v1/deployments","verb":"get"}`, third, false,
			"get //   /apis/apps/v1/deployments",
		},
		{`"nonResourceAttributes":{"path":"/healthz","verb":"get"}`, third, true, ""},
		{`"nonResourceAttributes":{"path":"/apis/apps/v1","verb":"get"}`, third, true, ""},
		{`"nonResourceAttributes":{"path":"/","verb":"get"}`, third, true, ""},
	} {
		asked = Attributes{}
		body := a.want(t, 201, "POST", path,
			`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{`+c.spec+`}}`,
			"Authorization", c.token)
		want := `"spec":{` + c.spec + `},"status":{"allowed":`
		if c.want {
			want += "true}}"
		} else {
			want += `false,"reason":"eve only listens"}}`
		}
		if !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %s", c.spec, body, want)
		}
		got := strings.Join([]string{asked.Verb, asked.Resource.Group + "/" + asked.Resource.Plural + "/" +
			asked.Subresource, asked.Namespace, asked.Name, asked.Path}, " ")
		if c.asked == "" {
			c.asked = " //   "
		}
		if got != c.asked {
			t.Errorf("%s: the Authorizer got %q, want %q", c.spec, got, c.asked)
		}
	}
	const pods = `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`
	a.want(t, 201, "POST", path, "spec:\n  resourceAttributes: {verb: get, resource: pods}\n", "Authorization", secret,
		"Content-Type", "application/yaml")
	if asked.Resource.Kind != "Pod" {
		t.Errorf("got %+v, want the whole resource that is served", asked.Resource)
	}
	a.wantError(t, 503, "ServiceUnavailable", "POST", path, pods, "Authorization", `Bearer to,ken`)
	a.wantError(t, 401, "Unauthorized", "POST", path, pods)
	a.wantError(t, 405, "MethodNotAllowed", "GET", path, "", "Authorization", secret)
	for _, body := range []string{"", "{", `{"kind":"Pod"}`, `{"spec":{"resourceAttributes":[]}}`} {
		a.wantError(t, 400, "BadRequest", "POST", path, body, "Authorization", secret)
	}
	for _, body := range []string{
		"{}", `{"spec":{}}`,
		`{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`,
	} {
		a.wantError(t, 422, "Invalid", "POST", path, body, "Authorization", secret)
	}
}

func TestAccessReviewAllowsAllWithoutAuthorizer(t *testing.T) {
	a := startServer(t, nil)
	body := a.want(t, 201, "POST", accessReviews.Path(""),
		`{"spec":{"resourceAttributes":{"verb":"delete","resource":"pods"}}}`)
	if !strings.Contains(body, `"allowed":true`) {
		t.Errorf("got %s, want it to be allowed", body)
	}
	if list := a.want(t, 200, "GET", "/apis/authorization.k8s.io/v1", ""); !strings.Contains(list,
		`"name":"selfsubjectaccessreviews","singularName":"selfsubjectaccessreview","namespaced":false,"kind":"SelfSubjectAccessReview","verbs":["create"]`) {
		t.Errorf("got %s, want the reviews", list)
	}
	for _, reviews := range []Resource{accessReviews, rulesReviews} {
		if err := a.Add(reviews, nil); !errors.Is(err, listwatch.AlreadyExists) {
			t.Errorf("got %v for a resource at the path of the reviews, want AlreadyExists", err)
		}
	}
}

func TestRulesReviewListsWhatIsAllowed(t *testing.T) {
	const path, spec = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		`{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","spec":{"namespace":"team"}}`
	const own = `{"verbs":["create"],"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews","selfsubjectrulesreviews"]}`
	authorize := func(context.Context, User, Attributes) error { return errors.New("never called") }
	for name, c := range map[string]struct {
		configure func(*Handler)
		want      string // the end of the response
	}{
		"no authorizer": {nil, `,{"verbs":["*"],"nonResourceURLs":["*"]}],"incomplete":false}}`},
		"unknown rules": {
			func(h *Handler) { h.Authorize = authorize },
			`"/readyz"]}],"incomplete":true,"evaluationError":"the authorizer of this server cannot list its rules"}}`,
		},
		"rules": {func(h *Handler) {
			h.Authorize = authorize
			h.RulesFor = func(_ context.Context, u User, namespace string) (Rules, error) {
				return Rules{
					Paths:      []PathRule{{[]string{"get"}, []string{"/" + u.Name + "/" + namespace}}},
					Incomplete: true,
				}, nil
			}
		}, `,{"verbs":["get"],"nonResourceURLs":["/system:anonymous/team"]}],"incomplete":true}}`},
		"a failure": {func(h *Handler) {
			h.Authorize = authorize
			h.RulesFor = func(context.Context, User, string) (Rules, error) {
				return Rules{}, listwatch.Cause{Message: "no policy yet"}
			}
		}, `"incomplete":true,"evaluationError":"no policy yet"}}`},
	} {
		a := startServer(t, c.configure)
		body := strings.TrimSpace(a.want(t, 201, "POST", path, spec))
		if !strings.HasSuffix(body, c.want) || !strings.Contains(body, own) ||
			!strings.Contains(body, `{"verbs":["get"],"nonResourceURLs":["/","/api","/api/*"`) {
			t.Errorf("%s: got %s, want it to end with %s", name, body, c.want)
		}
		if rule := a.want(t, 201, "POST", accessReviews.Path(""),
			`{"spec":{"resourceAttributes":{"verb":"create","group":"authorization.k8s.io","resource":"selfsubjectrulesreviews"}}}`); !strings.Contains(rule, `"allowed":true`) {
			t.Errorf("%s: got %s, want every user to create these reviews", name, rule)
		}
		if s := a.wantError(t, 400, "BadRequest", "POST", path, `{"spec":{}}`); !strings.Contains(s.Message,
			"no namespace on request") {
			t.Errorf("%s: got %s, want the message of Kubernetes", name, s.Message)
		}
		a.wantError(t, 400, "BadRequest", "POST", path,
			`{"kind":"SelfSubjectAccessReview","spec":{"namespace":"team"}}`)
		a.wantError(t, 405, "MethodNotAllowed", "GET", path, "")
	}
}

func TestOpenPathsAreOpen(t *testing.T) {
	for _, path := range openPaths() {
		if one := strings.ReplaceAll(path, "*", "v1"); !isOpen(one) {
			t.Errorf("%s is listed as open, but %s is not", path, one)
		}
	}
}

func TestAccessReviewHoldsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := make(chan struct{})
		var asking atomic.Int64
		h := &Handler{Authorize: func(context.Context, User, Attributes) error {
			asking.Add(1)
			<-ask
			return nil
		}}
		body := `{"x":"` + strings.Repeat("x", 100_000) +
			`","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`
		requests := 4 * runtime.GOMAXPROCS(0)
		for range requests {
			go func() { // ends when ask is closed
				h.ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequestWithContext(t.Context(), "POST", accessReviews.Path(""),
						strings.NewReader(body)))
			}()
		}
		synctest.Wait()
		if got := asking.Load(); got != int64(requests) {
			t.Errorf("%d of %d reviews with large bodies ask the Authorizer at once, want all", got, requests)
		}
		close(ask)
	})
}
