package watchserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchcache"
	"github.com/listwatch/listwatch/watchserver"
)

// A unionFixture serves two collections of one database, a collection of another database, and
// other things, at paths of their own, and unions at /watch.
type unionFixture struct {
	*fixture
	nodes, pods *store.Collection
	revoked     atomic.Bool // pods are forbidden
}

func newUnionFixture(t *testing.T) *unionFixture {
	t.Helper()
	u := &unionFixture{}
	db := memory.Open(memory.Options{})
	collection := func(db *memory.DB, kind string) *store.Collection {
		c, err := db.Collection(store.CollectionSpec{
			Kind: kind, Namespaced: kind == "Pod",
			Fields: []string{"spec.node"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	u.nodes, u.pods = collection(db, "Node"), collection(db, "Pod")
	other := collection(memory.Open(memory.Options{}), "Other")
	mux := http.NewServeMux()
	serve := func(path string, source listwatch.Source, authorize func() error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			e := watchserver.Endpoint{Source: source, Watch: path == "/streams/pods"}
			e.Namespace = r.PathValue("namespace")
			if authorize != nil {
				e.Authorize = func(context.Context, watchserver.User) error { return authorize() }
			}
			u.WatchServer.Serve(w, r, e)
		})
	}
	mayRead := func() error {
		if u.revoked.Load() {
			return listwatch.Cause{Message: "pods are secret"}
		}
		return nil
	}
	serve("/nodes", u.nodes, nil)
	serve("/pods", u.pods, mayRead)
	serve("/namespaces/{namespace}/pods", u.pods, mayRead)
	serve("/streams/pods", u.pods, nil)
	mux.HandleFunc("/owned", func(w http.ResponseWriter, r *http.Request) {
		ada := watchserver.User{Name: "ada"}
		ada.Recheck = func() (watchserver.User, error) { return ada, mayRead() }
		e := watchserver.Endpoint{Source: u.nodes, Authorize: func(_ context.Context, user watchserver.User) error {
			if user.Name != ada.Name {
				return errors.New("these are Ada's nodes")
			}
			return nil
		}}
		u.WatchServer.Serve(w, r.WithContext(watchserver.WithUser(r.Context(), ada)), e)
	})
	serve("/others", other, nil)
	serve("/cached", &watchcache.Cache{}, nil)
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "text") })
	u.fixture = &fixture{T: t}
	u.fixture.Server = servertest.Start(t, u.nodes, servertest.Options{Wrap: func(server http.Handler) http.Handler {
		mux.Handle("/watch", server.(*watchserver.Server).Union(mux))
		return mux
	}})
	return u
}

// WatchServer is set before the handler is made.
func (u *unionFixture) create(c *store.Collection, namespace, name string) listwatch.Version {
	u.Helper()
	return testkit.Must(c.Create(u.Context(),
		fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q},"spec":{"node":"n1"}}`, name, namespace)))(u).Version
}

// query returns the parameters of a union of urls.
func unionQuery(query string, urls ...string) string {
	for _, of := range urls {
		query += "&of=" + url.QueryEscape(of)
	}
	return strings.TrimPrefix(query, "&")
}

func (u *unionFixture) watch(c transport.Client, query string, header http.Header) *openWatch {
	u.Helper()
	r, err := c.Dial(context.Background(), &transport.Request{URL: u.WatchURL("/watch", query), Header: header})
	if err != nil {
		u.Fatalf("%s: %v", c.Name(), err)
	}
	u.Cleanup(func() { r.Close() })
	return &openWatch{u.fixture, c.Name(), r}
}

func onEachUnion(t *testing.T, test func(u *unionFixture, c transport.Client)) {
	for _, name := range servertest.TransportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUnionFixture(t)
				test(u, u.Client(name))
			})
		})
	}
}

func TestUnionServesCollectionsInOneOrder(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.pods, "shop", "p0")
		u.create(u.pods, "else", "hidden")
		newest := u.create(u.nodes, "", "n0")
		query := unionQuery("allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
			"/nodes", "/namespaces/shop/pods?fieldSelector=spec.node=n1")
		w := u.watch(c, query, nil)
		if at := w.want("ADDED n0", "ADDED p0", "BOOKMARK")[2]; at != newest {
			u.Errorf("the bookmark is at %d, want %d", at, newest)
		}
		var versions []listwatch.Version
		for i := 1; i <= 3; i++ {
			versions = append(versions, u.create(u.pods, "shop", fmt.Sprint("p", i)),
				u.create(u.nodes, "", fmt.Sprint("n", i)))
			u.create(u.pods, "else", fmt.Sprint("p", i))
		}
		lines := []string{"ADDED p1", "ADDED n1", "ADDED p2", "ADDED n2", "ADDED p3", "ADDED n3"}
		if got := w.want(lines...); !slices.Equal(got, versions) {
			u.Errorf("got the versions %d, want %d", got, versions)
		}
		// A browser sends the same URL and its position.
		for i, v := range versions[:5] {
			u.watch(c, query, http.Header{"Last-Event-Id": {v.String()}}).want(lines[i+1:]...)
			u.watch(c, unionQuery("resourceVersion="+v.String(), "/nodes",
				"/pods?fieldSelector=metadata.namespace=shop"), nil).want(lines[i+1:]...)
		}
	})
}

// The initial events are a difference to the state of all collections.
func TestUnionSendsTheDifference(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		parts := []string{"/nodes", "/pods?fieldSelector=metadata.namespace=shop"}
		u.create(u.nodes, "", "n0")
		u.create(u.nodes, "", "n1")
		u.create(u.pods, "shop", "p0")
		w := u.watch(c, unionQuery(initialEvents, parts...), nil)
		w.want("ADDED n0", "ADDED n1", "ADDED p0")
		had := w.synced()
		u.create(u.pods, "else", "hidden")
		u.create(u.pods, "shop", "p1")
		if _, err := u.nodes.Delete(u.Context(), listwatch.Key{Name: "n0"}, listwatch.Preconditions{}); err != nil {
			u.Fatal(err)
		}
		w = u.watch(c, unionQuery(since(had), parts...), nil)
		w.want("DELETED n0", "ADDED p1")
		e := w.synced()
		if v, ok := e.Since(); !ok || v != had.Version || len(e.Parts()) != 2 {
			u.Errorf("got %s, want a difference since %d of two parts", e.Object.Data, had.Version)
		}
		u.create(u.nodes, "", "n2")
		w.want("ADDED n2")
		for _, other := range [][]string{parts[:1], {parts[1], parts[0]}, {"/nodes", "/pods"}} {
			if _, ok := u.watch(c, unionQuery(since(had), other...), nil).afterInitial().Since(); ok {
				u.Errorf("got a difference from the state of %q to that of %q", parts, other)
			}
		}
	})
}

// afterInitial returns the bookmark that ends the initial events.
func (w *openWatch) afterInitial() listwatch.Event {
	w.Helper()
	for {
		received, err := w.Receive()
		if err != nil {
			w.Fatal(err)
		}
		if e, err := received.Event(); err != nil || e.Type != listwatch.Added {
			return e
		}
	}
}

// All collections have one pass, and the bookmark after it has the state of all of them.
func TestConflatedUnionSkipsSupersededStates(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		update := func(c *store.Collection, namespace, name string) listwatch.Version {
			data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q}}`, name, namespace)
			o, err := c.Replace(u.Context(), listwatch.Key{Namespace: namespace, Name: name}, data)
			if err != nil {
				u.Fatal(err)
			}
			return o.Version
		}
		u.create(u.nodes, "", "n")
		w := u.watch(c, unionQuery("conflate=10s&allowWatchBookmarks=1", "/nodes", "/pods"), nil)
		if got := w.Header().Get("Listwatch-Conflate"); got != "10s" {
			u.Errorf("got the header %q, want 10s", got)
		}
		w.want("ADDED n", "BOOKMARK")
		start := time.Now()
		u.create(u.pods, "a", "p")
		var newest listwatch.Version
		for range 10 {
			update(u.nodes, "", "n")
			newest = update(u.pods, "a", "p")
		}
		w.wantAfter(start, 10*time.Second, "ADDED p", "MODIFIED n", "MODIFIED p")
		if at := w.want("BOOKMARK")[0]; at != newest {
			u.Errorf("the bookmark after the pass is at %d, want %d", at, newest)
		}
	})
}

func TestUnionBookmarksHaveKindList(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.nodes, "", "n0")
		w := u.watch(c, unionQuery("allowWatchBookmarks=1&resourceVersion="+u.create(u.pods, "a", "p0").String(),
			"/nodes", "/pods"), nil)
		newest := u.create(u.nodes, "", "n1")
		w.want("ADDED n1")
		received, err := w.Receive()
		if err != nil {
			u.Fatal(err)
		}
		e, err := received.Event()
		want := fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"`, newest)
		if err != nil || e.Type != listwatch.Bookmark || !strings.HasPrefix(string(e.Object.Data), want) {
			u.Errorf("got %v %s, %v; want a bookmark that begins with %s", e.Type, e.Object.Data, err, want)
		}
	})
}

// The union ends when the user may no longer watch one of its parts.
func TestUnionEndsWithOnePermission(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.pods, "a", "p0")
		w := u.watch(c, unionQuery("", "/nodes", "/pods"), nil)
		w.want("ADDED p0")
		if n := u.WatchServer.Recheck(); n != 0 {
			u.Fatalf("Recheck ended %d watches, want none", n)
		}
		u.revoked.Store(true)
		if n := u.WatchServer.Recheck(); n != 1 {
			u.Fatalf("Recheck ended %d watches, want 1", n)
		}
		if err := w.wantError(listwatch.Forbidden); err.Status != http.StatusForbidden {
			u.Errorf("got status %d, want 403", err.Status)
		}
	})
}

func TestUnionReducesObjectsOfEachPart(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.nodes, "", "n")
		query := unionQuery("", "/nodes?fields=spec", "/pods?fields=-spec")
		w := u.watch(c, query, nil)
		u.create(u.pods, "shop", "p")
		for _, want := range []string{"Node n true", "Pod p false"} {
			received, err := w.Receive()
			if err != nil {
				t.Fatal(err)
			}
			var o struct {
				Kind     string
				Metadata listwatch.Metadata
				Spec     any
			}
			if err := json.Unmarshal(received.Object, &o); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %s %t", o.Kind, o.Metadata.Name, o.Spec != nil); got != want {
				t.Errorf("got %s: %s, want %s", got, received.Object, want)
			}
			if o.Kind == "Node" && o.Metadata.CreationTimestamp != nil {
				t.Errorf("got %s, want a Node without its time of creation", received.Object)
			}
		}
		if code, body := u.get(t, "/watch?"+query); code != http.StatusOK || strings.Count(body, `"spec"`) != 1 {
			t.Errorf("the list: got %d %s, want spec only in the node", code, body)
		}
	})
}

// The routes may identify the user of a part themselves. A later check is about that user.
func TestUnionChecksTheUsersOfItsParts(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.nodes, "", "n0")
		w := u.watch(c, unionQuery("", "/owned"), nil)
		w.want("ADDED n0")
		if n := u.WatchServer.Recheck(); n != 0 {
			u.Fatalf("Recheck ended %d watches, want none", n)
		}
		u.revoked.Store(true)
		if n := u.WatchServer.Recheck(); n != 1 {
			u.Fatalf("Recheck ended %d watches, want 1", n)
		}
		w.wantError(listwatch.Unauthorized)
	})
}

func TestUnionListHasOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnionFixture(t)
		u.create(u.pods, "a", "p0")
		old := u.create(u.nodes, "", "n0")
		newest := u.create(u.pods, "a", "p1")
		for query, want := range map[string]string{
			"": "[n0 p0 p1]",
			"resourceVersionMatch=Exact&resourceVersion=" + old.String(): "[n0 p0]",
		} {
			code, body := u.get(t, "/watch?"+unionQuery(query, "/nodes", "/pods"))
			var list struct {
				Kind, APIVersion string
				Metadata         struct{ ResourceVersion string }
				Items            []struct{ Metadata struct{ Name string } }
			}
			err := json.Unmarshal([]byte(body), &list)
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Metadata.Name)
			}
			version := newest
			if query != "" {
				version = old
			}
			if code != 200 || err != nil || list.Kind != "List" || list.APIVersion != "v1" ||
				fmt.Sprint(names) != want ||
				list.Metadata.ResourceVersion != version.String() {
				t.Errorf("%q: got %d %s, want %s at %d", query, code, body, want, version)
			}
		}
	})
}

func (u *unionFixture) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: u.Dial}}
	defer client.CloseIdleConnections()
	res, err := client.Get(u.URL(path))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func TestUnionRefusesWhatItCannotServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnionFixture(t)
		u.create(u.nodes, "", "n0")
		many := slices.Repeat([]string{"/nodes"}, 33)
		for _, tt := range []struct {
			name, query, forbidden string
			urls                   []string
			code                   int
			message                string
		}{
			{name: "no part", code: 400, message: "of: given 0 times; must be the URLs of 1 to 32 collections"},
			{name: "33 parts", urls: many, code: 400, message: "of: given 33 times"},
			{
				name: "one collection twice", urls: []string{"/pods", "/namespaces/a/pods"}, code: 400,
				message: "one selection of each kind",
			},
			{
				name: "another database", urls: []string{"/nodes", "/others"}, code: 400,
				message: "is in another database than Node",
			},
			{
				name: "a cache", urls: []string{"/nodes", "/cached"}, code: 400,
				message: "a union needs caches of one Group",
			},
			{
				name: "no collection", urls: []string{"/nodes", "/text"}, code: 400,
				message: "is not the URL of a collection",
			},
			{name: "no such path", urls: []string{"/nodes", "/none"}, code: 404, message: "404 page not found"},
			{name: "a union", urls: []string{"/watch?of=/nodes"}, code: 400, message: `has the parameter \"of\"`},
			{
				name: "a union without parts", urls: []string{"/watch"}, code: 400,
				message: "a union cannot be a part of a union",
			},
			{
				name: "another host", urls: []string{"http://example.com/nodes"}, code: 400,
				message: "must be a URL that begins with a path",
			},
			{
				name: "another host without a scheme", urls: []string{"//example.com/nodes"}, code: 400,
				message: "must be a URL that begins with a path",
			},
			{
				name: "a parameter of the union", urls: []string{"/nodes?resourceVersion=5"}, code: 400,
				message: "all other parameters belong to the union",
			},
			{
				name: "a wrong selector", urls: []string{"/nodes?labelSelector=%2B"}, code: 400,
				message: "unable to parse label selector",
			},
			{
				name: "an unknown field", urls: []string{"/nodes?fieldSelector=spec.other=1"}, code: 400,
				message: "spec.other",
			},
			{
				name: "a selector of the union", query: "labelSelector=a", urls: []string{"/nodes"}, code: 400,
				message: "selectors and fields belong to the URLs in of",
			},
			{
				name: "a continue token", query: "continue=a", urls: []string{"/nodes"}, code: 400,
				message: "continue: has no meaning",
			},
			{
				name: "forbidden", forbidden: "pods", urls: []string{"/nodes", "/pods"}, code: 403,
				message: "pods are secret",
			},
			{
				name: "a version of the future", query: "watch=0&resourceVersion=99999999999999999",
				urls: []string{"/nodes"}, code: 504, message: "Too large resource version",
			},
			{name: "a path of watches", urls: []string{"/streams/pods"}, code: 400, message: "is the URL of a watch"},
		} {
			u.revoked.Store(tt.forbidden != "")
			for _, watch := range []string{"", "watch=1"} {
				if watch != "" && (tt.name == "a path of watches" || strings.HasPrefix(tt.query, "watch=0")) {
					continue
				}
				code, body := u.get(t, "/watch?"+unionQuery(strings.Trim(tt.query+"&"+watch, "&"), tt.urls...))
				if code != tt.code || !strings.Contains(body, tt.message) {
					t.Errorf("%s, %s: got %d %s, want %d with %q", tt.name, watch, code, body, tt.code, tt.message)
				}
			}
		}
	})
}

func TestUnionExpires(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		old := u.create(u.nodes, "", "n0")
		u.create(u.nodes, "", "n1")
		u.nodes.Backend().(interface{ Compact() }).Compact()
		w := u.watch(c, unionQuery("resourceVersion="+old.String(), "/pods", "/nodes"), nil)
		w.wantError(listwatch.Expired)
	})
}

// An idle union uses no goroutine of its own, and ends with the server.
func TestUnionDrains(t *testing.T) {
	onEachUnion(t, func(u *unionFixture, c transport.Client) {
		u.create(u.nodes, "", "n0")
		w := u.watch(c, unionQuery("", "/nodes", "/pods"), nil)
		w.want("ADDED n0")
		ctx, cancel := context.WithTimeout(u.Context(), time.Minute)
		defer cancel()
		if err := u.WatchServer.Drain(ctx); err != nil {
			u.Fatal(err)
		}
		w.wantEnd()
	})
}
