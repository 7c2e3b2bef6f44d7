package crudserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// A request is sent by a test, with the response that the test expects.
type request struct {
	name, method, path string
	header             http.Header
	body               string

	status int
	reason string // the reason of the Status; empty if the response is an object or a list
}

// do performs c and checks the response.
func (c request) do(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
	for name, values := range c.header {
		r.Header[name] = values
	}
	if r.Header.Get("Transfer-Encoding") != "" {
		r.ContentLength = -1
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var status kubestatus.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil && c.method != http.MethodHead {
		t.Fatalf("%s: got %q: %v", c.name, w.Body, err)
	}
	if w.Code != c.status || status.Reason != c.reason || c.reason != "" && status.Code != w.Code {
		t.Errorf("%s: got %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.reason)
	}
	return w
}

func TestVerbs(t *testing.T) {
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"})}
	w := request{"create", "POST", "/flags", nil, `{"metadata":{"name":"a"},"x":1}`, 201, ""}.do(t, h)
	first := w.Header().Get("ETag")
	if got := w.Header().Get("Location"); got != "/flags/a" || len(first) < 3 {
		t.Errorf("create: got Location %q, ETag %q", got, first)
	}
	w = request{"get", "GET", "/flags/a", nil, "", 200, ""}.do(t, h)
	if got := w.Header().Get("ETag"); got != first || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("get: got headers %v, want ETag %s", w.Header(), first)
	}
	object := w.Body.String()
	w = request{"update", "PUT", "/flags/a", nil, strings.Replace(object, `"x":1`, `"x":2`, 1), 200, ""}.do(t, h)
	second := w.Header().Get("ETag")
	request{"update of an old version", "PUT", "/flags/a", nil, object, 409, "Conflict"}.do(t, h)
	request{
		"update with an old ETag", "PUT", "/flags/a",
		http.Header{"If-Match": {first}},
		`{"metadata":{"name":"a"}}`,
		412, "Conflict",
	}.do(t, h)
	request{
		"delete with an old ETag", "DELETE", "/flags/a",
		http.Header{"If-Match": {first}},
		"", 412,
		"Conflict",
	}.do(t, h)
	w = request{
		"update with the ETag", "PUT", "/flags/a",
		http.Header{"If-Match": {second}},
		`{"metadata":{"name":"a"},"x":3}`, 200, "",
	}.do(t, h)
	request{
		"update with any ETag", "PUT", "/flags/a",
		http.Header{"If-Match": {"*"}},
		w.Body.String(), 200,
		"",
	}.do(t, h)
	if w := (request{"list", "GET", "/flags/", nil, "", 200, ""}).do(t, h); !strings.Contains(w.Body.String(),
		`"kind":"FlagList"`) {
		t.Errorf("list: got %s", w.Body)
	}
	request{"dry run", "DELETE", "/flags/a?dryRun=All", nil, "", 200, ""}.do(t, h)
	request{"head", "HEAD", "/flags/a", nil, "", 200, ""}.do(t, h)
	request{
		"delete with the ETag", "DELETE", "/flags/a",
		http.Header{"If-Match": {w.Header().Get("ETag")}},
		"", 200,
		"",
	}.do(t, h)
	request{"get a deleted object", "GET", "/flags/a", nil, "", 404, "NotFound"}.do(t, h)
}

var mergePatch = []string{string(listwatch.MergePatch)}

func TestInvalidRequestsAreRefused(t *testing.T) {
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), MaxBodyBytes: 1000}
	request{"create", "POST", "/flags", nil, `{"metadata":{"name":"a"}}`, 201, ""}.do(t, h)
	const object = `{"metadata":{"name":"a"}}`
	for _, c := range []request{
		{"unknown path", "GET", "/flagship", nil, "", 404, "NotFound"},
		{"deeper path", "GET", "/flags/a/b", nil, "", 404, "NotFound"},
		{"empty segment", "DELETE", "/flags//a", nil, "", 404, "NotFound"},
		{"escaped slash", "GET", "/flags/a%2Fb", nil, "", 404, "NotFound"},
		{"create at an object", "POST", "/flags/a", nil, object, 405, "MethodNotAllowed"},
		{"delete of everything", "DELETE", "/flags", nil, "", 405, "MethodNotAllowed"},
		{"delete of everything with a slash", "DELETE", "/flags/", nil, "", 405, "MethodNotAllowed"},
		{"patch of everything", "PATCH", "/flags", nil, `{}`, 405, "MethodNotAllowed"},
		{
			"JSON patch", "PATCH", "/flags/a",
			http.Header{"Content-Type": {"application/json-patch+json"}},
			`[]`, 415,
			"UnsupportedMediaType",
		},
		{"patch without a type", "PATCH", "/flags/a", nil, `{}`, 415, "UnsupportedMediaType"},
		{
			"patch of an old version", "PATCH", "/flags/a",
			http.Header{"Content-Type": mergePatch, "If-Match": {`"1"`}},
			`{}`, 412, "Conflict",
		},
		{
			"contradicting versions of a patch", "PATCH", "/flags/a",
			http.Header{"Content-Type": mergePatch, "If-Match": {`"1"`}},
			`{"metadata":{"resourceVersion":"2"}}`, 400,
			"BadRequest",
		},
		{
			"patch of the name", "PATCH", "/flags/a",
			http.Header{"Content-Type": mergePatch},
			`{"metadata":{"name":"b"}}`,
			400, "BadRequest",
		},
		{
			"patch that makes the object large", "PATCH", "/flags/a",
			http.Header{"Content-Type": mergePatch},
			`{"x":"` + strings.Repeat("x", 980) + `"}`, 413, "RequestEntityTooLarge",
		},
		{"create what exists", "POST", "/flags", nil, object, 409, "AlreadyExists"},
		{"invalid name", "POST", "/flags", nil, `{"metadata":{"name":"A B"}}`, 422, "Invalid"},
		{"another name", "PUT", "/flags/a", nil, `{"metadata":{"name":"b"}}`, 400, "BadRequest"},
		{"update of a missing object", "PUT", "/flags/b", nil, `{"metadata":{"name":"b"}}`, 404, "NotFound"},
		{"no body", "POST", "/flags", nil, "", 400, "BadRequest"},
		{"no JSON", "PUT", "/flags/a", nil, "x: 1", 400, "BadRequest"},
		{"an array", "PUT", "/flags/a", http.Header{"If-Match": {`"1"`}}, "[]", 400, "BadRequest"},
		{
			"a duplicate member", "PUT", "/flags/a",
			http.Header{"If-Match": {`"1"`}},
			`{"metadata":{"name":"a"},"x":1,"x":2}`, 400, "BadRequest",
		},
		{
			"large body", "POST", "/flags", nil, `{"x":"` + strings.Repeat("x", 1000) + `"}`, 413,
			"RequestEntityTooLarge",
		},
		{"large body of a delete", "DELETE", "/flags/a", nil, strings.Repeat(" ", 1001), 413, "RequestEntityTooLarge"},
		{
			"large chunked body", "POST", "/flags",
			http.Header{"Transfer-Encoding": {"chunked"}},
			strings.Repeat(" ", 1001), 413, "RequestEntityTooLarge",
		},
		{
			"Content-Type", "POST", "/flags",
			http.Header{"Content-Type": {"text/plain"}},
			object, 415,
			"UnsupportedMediaType",
		},
		{"Accept of a read", "GET", "/flags/a", http.Header{"Accept": {"text/html"}}, "", 406, "NotAcceptable"},
		{"Accept of a write", "DELETE", "/flags/a", http.Header{"Accept": {"text/html"}}, "", 406, "NotAcceptable"},
		{"dryRun", "DELETE", "/flags/a?dryRun=Some", nil, "", 400, "BadRequest"},
		{"empty dryRun", "DELETE", "/flags/a?dryRun=", nil, "", 400, "BadRequest"},
		{"weak ETag", "DELETE", "/flags/a", http.Header{"If-Match": {`W/"1"`}}, "", 400, "BadRequest"},
		{"several ETags", "PUT", "/flags/a", http.Header{"If-Match": {`"1"`, `"2"`}}, object, 400, "BadRequest"},
		{
			"contradicting versions of an update", "PUT", "/flags/a",
			http.Header{"If-Match": {`"1"`}},
			`{"metadata":{"name":"a","resourceVersion":"2"}}`, 400, "BadRequest",
		},
		{
			"contradicting versions of a delete", "DELETE", "/flags/a",
			http.Header{"If-Match": {`"1"`}},
			`{"preconditions":{"resourceVersion":"2"}}`, 400, "BadRequest",
		},
		{"body of a delete", "DELETE", "/flags/a", nil, "no", 400, "BadRequest"},
		{"uid of a delete", "DELETE", "/flags/a", nil, `{"preconditions":{"uid":"x"}}`, 409, "Conflict"},
		{
			"page of another origin", "DELETE", "/flags/a",
			http.Header{"Origin": {"https://evil.example"}},
			"", 403,
			"Forbidden",
		},
	} {
		w := c.do(t, h)
		if allow := w.Header().Get("Allow"); c.status == 405 && allow == "" {
			t.Errorf("%s: got no Allow header", c.name)
		}
	}
	request{"get", "GET", "/flags/a", nil, "", 200, ""}.do(t, h)
}

func TestRequestedDryRunsWriteNothing(t *testing.T) {
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"})}
	request{"create", "POST", "/flags", nil, `{"metadata":{"name":"a"}}`, 201, ""}.do(t, h)
	request{"in the body", "DELETE", "/flags/a", nil, `{"dryRun":["All"]}`, 200, ""}.do(t, h)
	request{"unknown in the body", "DELETE", "/flags/a", nil, `{"dryRun":["Some"]}`, 400, "BadRequest"}.do(t, h)
	request{"second value", "DELETE", "/flags/a?dryRun=All&dryRun=All", nil, "", 200, ""}.do(t, h)
	request{"malformed query", "DELETE", "/flags/a?dryRun=All;x=1", nil, "", 400, "BadRequest"}.do(t, h)
	request{
		"if none match", "PUT", "/flags/a",
		http.Header{"If-None-Match": {"*"}},
		`{"metadata":{"name":"a"},"x":1}`,
		400, "BadRequest",
	}.do(t, h)
	if w := (request{"get", "GET", "/flags/a", nil, "", 200, ""}).do(t, h); strings.Contains(w.Body.String(), `"x"`) {
		t.Errorf("a refused update wrote %s", w.Body)
	}
}

// knowsAnn is an Authenticator for the bearer token "ann".
func knowsAnn(r *http.Request) (watchserver.User, error) {
	if r.Header.Get("Authorization") == "Bearer ann" {
		return watchserver.User{Name: "ann"}, nil
	}
	return watchserver.User{}, nil
}

func TestAuthenticatorGuardsEveryVerb(t *testing.T) {
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}),
		Server: &watchserver.Server{Access: watchserver.Access{Authenticator: knowsAnn}},
	}
	ann, body := http.Header{"Authorization": {"Bearer ann"}}, `{"metadata":{"name":"a"}}`
	for _, c := range []request{
		{"create", "POST", "/flags", nil, body, 201, ""},
		{"list", "GET", "/flags", nil, "", 200, ""},
		{"get", "GET", "/flags/a", nil, "", 200, ""},
		{"update", "PUT", "/flags/a", nil, body, 200, ""},
		{"delete", "DELETE", "/flags/a", nil, "", 200, ""},
	} {
		anonymous := c
		anonymous.status, anonymous.reason = 401, "Unauthorized"
		anonymous.do(t, h)
		c.header = ann
		c.do(t, h)
	}
}

func TestRefusedWriteNamesTheUser(t *testing.T) {
	var got []string
	s := &watchserver.Server{
		Access: watchserver.Access{Authenticator: knowsAnn},
		Trace: &watchserver.Trace{Refused: func(ctx context.Context, r watchserver.Request, err error) {
			code := listwatch.AsError(err).HTTPStatus()
			got = append(got, fmt.Sprintf("%d %s %q %q %q", code, r.Resource.Name, r.User, r.Client,
				watchserver.UserOf(ctx).Name))
		}},
	}
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), Server: s}
	ann, body := http.Header{"Authorization": {"Bearer ann"}}, `{"metadata":{"name":"a"}}`
	request{"update of a missing object", "PUT", "/flags/a", ann, body, 404, "NotFound"}.do(t, h)
	request{"no such path", "PUT", "/flags/a/b", ann, body, 404, "NotFound"}.do(t, h)
	request{"invalid list", "GET", "/flags?limit=x", ann, "", 400, "BadRequest"}.do(t, h)
	request{"no credentials", "PUT", "/flags/a", nil, body, 401, "Unauthorized"}.do(t, h)
	want := []string{
		`404 flags "ann" "ann" "ann"`, `404 flags "ann" "ann" "ann"`, `400 flags "ann" "ann" "ann"`,
		`401 flags "" "192.0.2.1" ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPathsWithNamespaces(t *testing.T) {
	h := &Handler{Collection: newCollection(t, store.CollectionSpec{Kind: "Flag", Namespaced: true})}
	for _, c := range []request{
		{"create in the namespace of the path", "POST", "/team", nil, `{"metadata":{"name":"a"}}`, 201, ""},
		{
			"create in the namespace of the object", "POST", "/", nil, `{"metadata":{"name":"b","namespace":"team"}}`,
			201, "",
		},
		{
			"create in another namespace", "POST", "/team", nil, `{"metadata":{"name":"c","namespace":"x"}}`, 400,
			"BadRequest",
		},
		{"create without a namespace", "POST", "/", nil, `{"metadata":{"name":"c"}}`, 422, "Invalid"},
		{"get", "GET", "/team/b", nil, "", 200, ""},
		{"get in another namespace", "GET", "/other/b", nil, "", 404, "NotFound"},
		{"deeper path", "GET", "/team/b/c", nil, "", 404, "NotFound"},
	} {
		c.do(t, h)
	}
	for path, want := range map[string]int{"/": 2, "/team": 2, "/other": 0} {
		w := request{"list", "GET", path, nil, "", 200, ""}.do(t, h)
		if got := strings.Count(w.Body.String(), `"uid"`); got != want {
			t.Errorf("list %s: got %d objects, want %d", path, got, want)
		}
	}
}

func TestEachWriteIsReported(t *testing.T) {
	var got []string
	s := &watchserver.Server{Trace: &watchserver.Trace{Changed: func(_ context.Context, c watchserver.Change) {
		got = append(got, c.Verb+" "+c.Resource.Name+" "+c.Key.Name)
	}}}
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), Server: s}
	request{"create", "POST", "/flags", nil, `{"metadata":{"name":"a"}}`, 201, ""}.do(t, h)
	request{"update", "PUT", "/flags/a", nil, `{"metadata":{"name":"a"},"x":1}`, 200, ""}.do(t, h)
	request{"failed update", "PUT", "/flags/b", nil, `{"metadata":{"name":"b"},"x":1}`, 404, "NotFound"}.do(t, h)
	request{"delete", "DELETE", "/flags/a", nil, "", 200, ""}.do(t, h)
	if want := []string{"create flags a", "update flags a", "delete flags a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A readerFunc is a body that calls a function when it is read.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestHugeLengthDoesNotOverflowTheLimits(t *testing.T) {
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}),
		Server: &watchserver.Server{Limits: watchserver.Limits{Memory: -1}}, MaxBodyBytes: -1,
	}
	r := httptest.NewRequest(http.MethodPost, "/flags", readerFunc(func([]byte) (int, error) {
		if used, _ := h.Server.Usage(); used.RequestBytes <= 0 {
			t.Errorf("got %d bytes in use, want more than none", used.RequestBytes)
		}
		return 0, io.ErrUnexpectedEOF
	}))
	r.ContentLength = 1 << 61
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func TestFieldsReduceReadsAndAreRefusedInWrites(t *testing.T) {
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"})}
	request{"create", "POST", "/flags", nil, `{"metadata":{"name":"a"},"x":1,"y":2}`, 201, ""}.do(t, h)
	for _, path := range []string{"/flags/a?fields=x", "/flags?fields=x"} {
		w := request{"read", "GET", path, nil, "", 200, ""}.do(t, h)
		if got := w.Body.String(); !strings.Contains(got, `"x":1`) || strings.Contains(got, `"y"`) ||
			w.Header().Get("Listwatch-Fields") != "x" {
			t.Errorf("%s: got %s with the headers %v, want only x", path, got, w.Header())
		}
	}
	for method, path := range map[string]string{
		"POST": "/flags", "PUT": "/flags/a", "PATCH": "/flags/a",
		"DELETE": "/flags/a",
	} {
		request{method, method, path + "?fields=x", nil, `{"metadata":{"name":"a"}}`, 400, "BadRequest"}.do(t, h)
	}
}
