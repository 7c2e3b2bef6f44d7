package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

var (
	keyA      = listwatch.Key{Name: "a"}
	documentA = []byte(`{"metadata":{"name":"a"},"n":1}`)
)

func TestObjectURL(t *testing.T) {
	key := listwatch.Key{Namespace: "ns", Name: "a"}
	for _, test := range []struct {
		url   string
		key   listwatch.Key
		plain bool
		// want holds the path of the object and, after a space, the path to create it.
		want string
	}{
		{"http://h/things", listwatch.Key{Name: "a"}, false, "/things/a /things"},
		{"http://h/things/", key, false, "/things/ns/a /things/ns"},
		{"http://h", key, false, "/ns/a /ns"},
		{
			"http://h/t%2Fs/things?token=x&watch=1&labelSelector=a&timeoutSeconds=5", key, false,
			"/t%2Fs/things/ns/a?token=x /t%2Fs/things/ns?token=x",
		},
		{"http://h/things", listwatch.Key{Name: "ä ?b"}, false, "/things/%C3%A4%20%3Fb /things"},
		{"http://h/api/v1/pods", key, false, "/api/v1/namespaces/ns/pods/a /api/v1/namespaces/ns/pods"},
		{"http://h/api/v1/pods/", key, false, "/api/v1/namespaces/ns/pods/a /api/v1/namespaces/ns/pods"},
		{"http://h/api/v1/nodes", listwatch.Key{Name: "a"}, false, "/api/v1/nodes/a /api/v1/nodes"},
		{"http://h/api/v1/namespaces", listwatch.Key{Name: "a"}, false, "/api/v1/namespaces/a /api/v1/namespaces"},
		{
			"http://h/k8s/c1/apis/a.b/v1beta2/namespaces/ns/things", key, false,
			"/k8s/c1/apis/a.b/v1beta2/namespaces/ns/things/a /k8s/c1/apis/a.b/v1beta2/namespaces/ns/things",
		},
		{
			"http://h/apis/a.b/v1/namespaces/ns/things",
			listwatch.Key{Name: "a"},
			false,
			"/apis/a.b/v1/namespaces/ns/things/a /apis/a.b/v1/namespaces/ns/things",
		},
		{"http://h/api/v1/things", key, true, "/api/v1/things/ns/a /api/v1/things/ns"},
		{"http://h/api/things", key, false, "/api/things/ns/a /api/things/ns"},
		{"http://h/myapi/v1/things", key, false, "/myapi/v1/things/ns/a /myapi/v1/things/ns"},
		{"http://h/api/v1/namespaces/other/pods", key, false, "error error"},
		{"http://h/things", listwatch.Key{}, false, "error /things"},
		{"http://h/things", listwatch.Key{Name: ".."}, false, "error /things"},
		{"http://h/things", listwatch.Key{Name: "a/b"}, false, "error /things"},
		{"http://h/things", listwatch.Key{Name: "a%2Fb"}, false, "error /things"},
		{"http://h/things", listwatch.Key{Namespace: ".", Name: "a"}, false, "error error"},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, method := range []string{http.MethodDelete, http.MethodPost} {
			o, err := objectURL(u, objectRequest{method: method, key: test.key}, test.plain)
			switch {
			case err == nil:
				got = append(got, o.RequestURI())
			case errors.Is(err, listwatch.Invalid):
				got = append(got, "error")
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s, %v: got %s, want %s", test.url, test.key, got, test.want)
		}
		if u.String() != test.url {
			t.Errorf("the URL was changed to %s", u)
		}
	}
}

// serveDocuments returns a Remote of a server with the given handler.
func serveDocuments(t *testing.T, h http.HandlerFunc) *Remote {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	r := &Remote{URL: s.URL + "/documents"}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestUnusableResponsesAreErrors(t *testing.T) {
	respond := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			io.WriteString(w, body)
		}
	}
	const object = `{"metadata":{"name":"a","resourceVersion":"1"}}`
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    listwatch.Code
	}{
		{"a page of a proxy", respond("text/html", "<title>Sign in</title>"), listwatch.Unsupported},
		{"a list", respond("application/json", `{"kind":"List","items":[]}`), listwatch.Corrupt},
		{"no version", respond("application/json", `{"metadata":{"name":"a"}}`), listwatch.Unsupported},
		{"half an object", respond("application/json", object[:20]), listwatch.Corrupt},
		{"a large object", respond("application/json",
			strings.Replace(object, "{", `{"x":"`+strings.Repeat("x", 1000)+`",`, 1)), listwatch.Corrupt},
		{"a redirect that forgets the write", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			respond("application/json", object)(w, r)
		}, listwatch.Unsupported},
		{"a timeout of a gateway", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "late", http.StatusGatewayTimeout)
		}, listwatch.Unavailable},
	} {
		r := serveDocuments(t, test.handler)
		r.MaxObjectBytes = 500
		_, err := r.Replace(t.Context(), keyA, documentA)
		if err == nil || listwatch.CodeOf(err) != test.want {
			t.Errorf("%s: got error %v, want %v", test.name, err, test.want)
		}
	}
}

// A server may ignore the preference. Without it, a response without an object is an error.
func TestMinimalPatchNeedsNoObject(t *testing.T) {
	for _, test := range []struct {
		name                string
		minimal, hasContent bool
		want                listwatch.Version
		fails               bool
	}{
		{"no object", true, false, 0, false},
		{"an object nevertheless", true, true, 1, false},
		{"the object is needed", false, true, 1, false},
		{"the object is missing", false, false, 0, true},
	} {
		var prefer string
		r := serveDocuments(t, func(w http.ResponseWriter, r *http.Request) {
			if prefer = r.Header.Get("Prefer"); !test.hasContent {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"metadata":{"name":"a","resourceVersion":"1"}}`)
		})
		o, err := r.Patch(t.Context(), keyA, listwatch.Patch{
			Type: listwatch.MergePatch, Data: []byte("{}"), Minimal: test.minimal,
		})
		var got listwatch.Version
		if o != nil {
			got = o.Version
		}
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %v, %v, want version %d, an error: %t", test.name, o, err, test.want, test.fails)
		}
		if (prefer == "return=minimal") != test.minimal {
			t.Errorf("%s: sent Prefer %q", test.name, prefer)
		}
	}
}

func TestWriteRetriesWithFreshCredentials(t *testing.T) {
	var bodies []string
	c := serveDocuments(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if r.Header.Get("Authorization") != "fresh" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"metadata":{"name":"a","resourceVersion":"1"}}`)
	})
	c.Header = func(_ context.Context, refresh bool) (http.Header, error) {
		return http.Header{"Authorization": {map[bool]string{true: "fresh", false: "old"}[refresh]}}, nil
	}
	if _, err := c.Create(t.Context(), documentA); err != nil || len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("got error %v after the bodies %q, want the same body twice", err, bodies)
	}
}

// A server may respond with 303 after it has performed a POST, so a retry could perform it twice.
func TestRedirectedWriteHasAnUnknownResult(t *testing.T) {
	for _, status := range []int{200, 401, 404} {
		writes := 0
		c := serveDocuments(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.WriteHeader(status)
				return
			}
			writes++
			http.Redirect(w, r, "/documents/a", http.StatusSeeOther)
		})
		c.Header = func(context.Context, bool) (http.Header, error) { return nil, nil }
		_, err := c.Create(t.Context(), documentA)
		if !errors.Is(err, listwatch.Unsupported) ||
			!strings.Contains(err.Error(), "it is unknown whether the POST was performed") || writes != 1 {
			t.Errorf("a GET with status %d: got error %v after %d writes", status, err, writes)
		}
		if _, err := c.Delete(t.Context(), keyA, listwatch.Preconditions{}); !errors.Is(err, listwatch.Unsupported) {
			t.Errorf("a DELETE, a GET with status %d: got error %v, want %v", status, err, listwatch.Unsupported)
		}
	}
}

func TestDeleteAcceptsEverySuccess(t *testing.T) {
	const last = `{"metadata":{"name":"a","resourceVersion":"7"}}`
	for _, test := range []struct {
		status            int
		contentType, body string
		version           listwatch.Version // of the object that the delete returns, or zero
	}{
		{200, "application/json", last, 7},
		{202, "application/json", last, 7},
		{200, "application/json", last[:20], 0},
		{200, "application/json", `{"kind":"Status","metadata":{},"status":"Success"}`, 0},
		{200, "text/plain", "deleted", 0},
		{202, "", "", 0},
		{204, "", "", 0},
	} {
		c := serveDocuments(t, func(w http.ResponseWriter, r *http.Request) {
			if test.contentType != "" {
				w.Header().Set("Content-Type", test.contentType)
			}
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		})
		o, err := c.Delete(t.Context(), keyA, listwatch.Preconditions{})
		if err != nil || (o != nil) != (test.version != 0) || o != nil && o.Version != test.version {
			t.Errorf("%d with %q: got %v, error %v, want version %d", test.status, test.body, o, err, test.version)
		}
		if test.version != 0 {
			continue
		}
		if _, err := c.Create(t.Context(), documentA); err == nil {
			t.Errorf("%d with %q: got no error of a create, want one", test.status, test.body)
		}
	}
}

func TestDeleteSendsItsPreconditions(t *testing.T) {
	for want, p := range map[string]listwatch.Preconditions{
		"": {},
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"5"}}`: {Version: 5},
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}`:             {UID: "u"},
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"5"}}`: {
			UID:     "u",
			Version: 5,
		},
	} {
		var got []byte
		c := serveDocuments(t, func(_ http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) })
		if _, err := c.Delete(t.Context(), keyA, p); err != nil || string(got) != want {
			t.Errorf("%+v: the server received %s, error %v, want %s", p, got, err, want)
		}
	}
}
