package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
)

func TestListSendsKubernetesParameters(t *testing.T) {
	labels, _ := listwatch.ParseLabelSelector("a in (b,c)")
	tests := []struct {
		q    listwatch.Query
		want string
	}{
		{listwatch.Query{}, ""},
		{listwatch.Query{Start: listwatch.StartAny}, "resourceVersion=0"},
		{listwatch.Query{Start: listwatch.StartAt, Version: 7}, "resourceVersion=7&resourceVersionMatch=NotOlderThan"},
		{
			listwatch.Query{Start: listwatch.StartAt, Version: 7, Match: listwatch.MatchExact},
			"resourceVersion=7&resourceVersionMatch=Exact",
		},
		{listwatch.Query{
			Limit: 5, Selection: listwatch.Selection{Namespace: "ns", Labels: labels},
		}, "fieldSelector=metadata.namespace%3Dns&labelSelector=a+in+%28b%2Cc%29&limit=5"},
		{listwatch.Query{Limit: 5, Continue: "to/ken"}, "continue=to%2Fken&limit=5"},
	}
	for _, tt := range tests {
		r := newRemote()
		s := serveLists(r, respondWith(listBodyOf(7)))
		if _, err := r.List(t.Context(), tt.q); err != nil || s.queries() != tt.want {
			t.Errorf("%+v: got query %s, error %v, want query %s", tt.q, s.queries(), err, tt.want)
		}
	}
	for _, q := range []listwatch.Query{
		{Start: listwatch.StartAt},
		{Continue: "x", Start: listwatch.StartAny},
		{Continue: "x", Version: 3},
		{Continue: "x", Match: listwatch.MatchExact},
	} {
		if _, err := newRemote().List(t.Context(), q); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%+v: got error %v, want %v", q, err, listwatch.Invalid)
		}
	}
}

func TestListKeepsEveryByte(t *testing.T) {
	objects := []string{
		`{"metadata":{"name":"a","resourceVersion":"1"},"kind":"Thing","apiVersion":"v1","n":9007199254740993,"f":1e400,"z":-0,"s":"\u00e9\/<"}`,
		`{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"2","name":"b"},"a":{"a":1,"b":[]}}`,
	}
	body := `{"items":[` + strings.Join(objects, " ,\n") +
		`],"metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":4},"later":[{}],"apiVersion":"v1","kind":"ThingList"}`
	for _, limit := range []int{0, 200} {
		b := newListBody(iotest.OneByteReader(strings.NewReader(body)), int64(max(limit, 1<<10)), -1)
		page, err := b.read()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range page.Items {
			got = append(got, string(o.Data))
		}
		if !slices.Equal(got, objects) {
			t.Errorf("got %s, want %s", got, objects)
		}
		if page.Version != 9 || page.Continue != "c" || page.Remaining != 4 {
			t.Errorf("got version %d, continue %q, remaining %d", page.Version, page.Continue, page.Remaining)
		}
	}
}

func TestItemsInheritKindFromList(t *testing.T) {
	const item = `{"metadata":{"name":"a","resourceVersion":"1"},"x":1}`
	const half = `{"apiVersion":"v2","metadata":{"name":"a","resourceVersion":"1"}}`
	tests := []struct{ body, want string }{
		{
			`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + item + `]}`,
			`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"x":1}`,
		},
		{
			`{"items":[ { ` + item[1:] + ` ],"metadata":{"resourceVersion":"9"},"kind":"ThingList","apiVersion":"v1"}`,
			`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"x":1}`,
		},
		{
			`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + half + `]}`,
			`{"kind":"Thing","apiVersion":"v2","metadata":{"name":"a","resourceVersion":"1"}}`,
		},
		{`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + item + `]}`, item},
	}
	for _, tt := range tests {
		page, err := newListBody(strings.NewReader(tt.body), 1<<20, -1).read()
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		o := page.Items[0]
		if string(o.Data) != tt.want || o.Key.Name != "a" || o.Version != 1 {
			t.Errorf("got %s of %v at version %d, want %s", o.Data, o.Key, o.Version, tt.want)
		}
		if string(o.At(5).Data) != strings.Replace(tt.want, `"resourceVersion":"1"`, `"resourceVersion":"5"`, 1) {
			t.Errorf("at version 5: got %s", o.At(5).Data)
		}
	}
}

func TestEmptyList(t *testing.T) {
	for _, items := range []string{"[]", "null", " [ ] "} {
		page,
			err := newListBody(strings.NewReader(`{"kind":"ThingList","metadata":{"resourceVersion":"9"},"items":`+
			items+`}`), 1<<20, -1).read()
		if err != nil || len(page.Items) != 0 || page.Remaining != 0 || page.Version != 9 {
			t.Errorf("items %s: got %+v, error %v", items, page, err)
		}
	}
}

func TestListRejectsMalformedBodies(t *testing.T) {
	const head = `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":`
	tests := []struct {
		name, body string
		want       listwatch.Code
	}{
		{
			"an object", `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`,
			listwatch.Unsupported,
		},
		{"an array", `[]`, listwatch.Corrupt},
		{"not JSON", `<html>`, listwatch.Corrupt},
		{"two lists", head + `[]}{}`, listwatch.Corrupt},
		{"items twice", head + `[],"items":[]}`, listwatch.Corrupt},
		{"no items", `{"kind":"ThingList","metadata":{"resourceVersion":"9"}}`, listwatch.Corrupt},
		{"items is an object", head + `{}}`, listwatch.Corrupt},
		{
			"an opaque version", `{"kind":"ThingList","metadata":{"resourceVersion":"0a-1"},"items":[]}`,
			listwatch.Unsupported,
		},
		{"no version", `{"kind":"ThingList","metadata":{},"items":[]}`, listwatch.Unsupported},
		{"a numeric version", `{"kind":"ThingList","metadata":{"resourceVersion":9},"items":[]}`, listwatch.Corrupt},
		{
			"an item with an opaque version", head + `[{"metadata":{"name":"a","resourceVersion":"x"}}]}`,
			listwatch.Unsupported,
		},
		{"an item without name", head + `[{"metadata":{"resourceVersion":"1"}}]}`, listwatch.Corrupt},
		{"an item that is a number", head + `[1]}`, listwatch.Corrupt},
		{"truncated within an item", head + `[{"metadata":{"name":"a","resource`, listwatch.Unavailable},
		{"truncated between items", head + `[`, listwatch.Unavailable},
		{"empty", ``, listwatch.Unavailable},
		{"a large object", head + `[{"metadata":{"name":"a","resourceVersion":"1"},"x":"` + strings.Repeat("x", 2<<20) +
			`"}]}`, listwatch.Corrupt},
		{"a large list", head + `[]` + strings.Repeat(" ", 5<<20) + `}`, listwatch.Corrupt},
		{"deep nesting", head + strings.Repeat("[", 100_000), listwatch.Corrupt},
	}
	for _, tt := range tests {
		_, err := newListBody(strings.NewReader(tt.body), 1<<20, 4<<20).read()
		if got := listwatch.CodeOf(err); err == nil || got != tt.want {
			t.Errorf("%s: got error %v, want %v", tt.name, err, tt.want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%s: the error message has %d bytes, want at most 500", tt.name, len(err.Error()))
		}
	}
}

func TestListMayReachItsLimit(t *testing.T) {
	body := listBodyOf(9, "a", "b", "c")
	for limit, ok := range map[int64]bool{int64(len(body)): true, int64(len(body)) - 1: false, -1: true} {
		page, err := newListBody(iotest.DataErrReader(strings.NewReader(body)), 1<<20, limit).read()
		if (err == nil) != ok || ok && len(page.Items) != 3 {
			t.Errorf("limit %d for %d bytes: got %d items, error %v", limit, len(body), len(page.Items), err)
		}
	}
}

func TestListReturnsServerErrors(t *testing.T) {
	gone := `{"kind":"Status","apiVersion":"v1","metadata":{"continue":"fresh"},"status":"Failure","reason":"Expired","code":410,"message":"too old"}`
	r := newRemote()
	serveLists(r, func(n int) listResponse {
		return []listResponse{
			{status: 410, body: gone},
			{status: 503, body: "busy", header: http.Header{"Retry-After": {"7"}}},
			{status: 502, body: "<html><title>Bad gateway</title>" + strings.Repeat("x", 1<<20)},
			{status: 200, body: "<html>", header: http.Header{"Content-Type": {"text/html"}}},
			{status: 200, body: "x", header: http.Header{"Content-Encoding": {"br"}}},
		}[n]
	})
	list := func() *listwatch.Error {
		_, err := r.List(t.Context(), listwatch.Query{})
		return listwatch.AsError(err)
	}
	if e := list(); e.Code != listwatch.Expired || e.Continue != "fresh" || e.Op != "list" {
		t.Errorf("got %+v, want Expired with a new continue token", e)
	}
	if e := list(); e.Code != listwatch.Unavailable || e.RetryAfter().Seconds() != 7 {
		t.Errorf("got %v, retry after %v, want 7 s", e, e.RetryAfter())
	}
	if e := list(); e.Code != listwatch.Unavailable || !strings.Contains(e.Error(), "Bad gateway") ||
		len(e.Error()) > 500 {
		t.Errorf("got code %v and %d bytes, want Unavailable and at most 500: %.100s",
			e.Code, len(e.Error()), e.Error())
	}
	for range 2 {
		if e := list(); e.Code != listwatch.Unsupported {
			t.Errorf("got %v, want %v", e, listwatch.Unsupported)
		}
	}
}

func TestListFallbackReadsAllPages(t *testing.T) {
	r := newRemote(sequence(refuses(statusError(422)), sends(added("z", 10))))
	s := serveLists(r, func(n int) listResponse {
		body := listBodyOf(9, []string{"a", "b", "c"}[n])
		if n < 2 {
			body = strings.Replace(body, `"9"`, `"9","continue":"more"`, 1)
		}
		return listResponse{status: 200, body: body}
	})
	wantEvents(t, testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAny}),
		"(ADDED/a@1) (ADDED/b@1) (ADDED/c@1) ADDED/z@10")
	if got := s.queries(); got != "resourceVersion=0 continue=more continue=more" {
		t.Errorf("the lists have the queries %s", got)
	}
}

// FuzzListBody checks that every list that is accepted is valid.
func FuzzListBody(f *testing.F) {
	f.Add([]byte(listBodyOf(9, "a", "b")))
	f.Add(
		[]byte(
			`{"items":[{"metadata":{"name":"a","resourceVersion":"1"}}],"metadata":{"resourceVersion":"9"},"kind":"TList","apiVersion":"v1"}`))
	f.Add([]byte(`{"kind":"TList","items":null,"metadata":{"resourceVersion":"9"}} `))
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := newListBody(strings.NewReader(string(data)), 1<<10, 1<<16).read()
		if err != nil {
			if listwatch.CodeOf(err) == listwatch.Unknown {
				t.Errorf("error %v has no code", err)
			}
			return
		}
		for _, o := range page.Items {
			again, err := listwatch.ParseObject(o.Data)
			if err != nil || again.Key != o.Key || again.Version != o.Version || o.Version == 0 {
				t.Errorf("got %s as %v at %d, error %v", o.Data, o.Key, o.Version, err)
			}
		}
	})
}

func TestReadsOfANamespaceUseItsURL(t *testing.T) {
	const list = `{"kind":"ItemList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`
	const selected = "?fieldSelector=metadata.namespace%3Dns"
	for _, test := range []struct {
		name, path string
		plain      bool
		want       []string // the URLs of a list and the next one, without other parameters
	}{
		{"Kubernetes", "/apis/g.example.com/v1/items", false, []string{
			"/apis/g.example.com/v1/namespaces/ns/items", "/apis/g.example.com/v1/namespaces/ns/items",
		}},
		{"no namespaces", "/api/v1/nodes", false, []string{
			"/api/v1/namespaces/ns/nodes", "/api/v1/nodes" + selected, "/api/v1/nodes" + selected,
		}},
		{"one namespace", "/api/v1/namespaces/ns/items", false, []string{
			"/api/v1/namespaces/ns/items" + selected, "/api/v1/namespaces/ns/items" + selected,
		}},
		{"plain paths", "/api/v1/items", true, []string{"/api/v1/items" + selected, "/api/v1/items" + selected}},
		{"other path", "/items", false, []string{"/items" + selected, "/items" + selected}},
	} {
		for _, watch := range []bool{false, true} {
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query := url.Values{}
				if fields := r.URL.Query()["fieldSelector"]; fields != nil {
					query["fieldSelector"] = fields
				}
				r.URL.RawQuery = query.Encode()
				got = append(got, r.URL.String())
				if strings.HasSuffix(r.URL.Path, "/namespaces/ns/nodes") {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, list) // the client of a watch disconnects
			}))
			remote := &Remote{
				URL: server.URL + test.path, PlainPaths: test.plain, Transports: []transport.Client{&chunked.Client{}},
			}
			q := listwatch.Query{Selection: listwatch.Selection{Namespace: "ns"}}
			for range 2 {
				if err := read(t, remote, q, watch); err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
			}
			_ = remote.Close()
			server.Close()
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, watch %v: got %q, want %q", test.name, watch, got, test.want)
			}
		}
	}
}

// read requests a list or opens a watch.
func read(t *testing.T, r *Remote, q listwatch.Query, watch bool) error {
	t.Helper()
	if !watch {
		_, err := r.List(t.Context(), q)
		return err
	}
	q.Start, q.Version, q.InitialEvents = listwatch.StartAt, 7, listwatch.InitialEventsNo
	w, err := r.Connect(0).Watch(t.Context(), q)
	if err != nil {
		return err
	}
	return w.Close()
}
