package clusterrelay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

func TestQuietCachesAreDropped(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		time.AfterFunc(time.Minute, func() { c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=7200") })
		c.get("of-ann", podsPath)
		c.get("of-ann", widgetsPath)
		time.Sleep(59 * time.Minute)
		if n := len(c.handler.caches.all()); n != 2 {
			c.Errorf("%d caches are open after 59 minutes, want 2", n)
		}
		time.Sleep(2 * time.Minute)
		if all := c.handler.caches.all(); len(all) != 1 || all[0].resource.Plural != "pods" {
			c.Errorf("%d caches are open after an hour, want that of the pods, which are watched", len(all))
		}
		time.Sleep(3 * time.Hour)
		if n := len(c.handler.caches.all()); n != 0 {
			c.Errorf("%d caches are open after the watch has ended, want none", n)
		}
		c.get("of-ann", podsPath)
	})
}

func TestPatternsSelectWhatIsCached(t *testing.T) {
	for _, test := range []struct {
		cache, noCache []string
		cached         string
	}{
		{nil, nil, "pods widgets"},
		{[]string{"*"}, nil, "pods widgets"},
		{[]string{"secrets", "*"}, nil, "pods secrets widgets"},
		{[]string{"secrets"}, nil, "secrets"},
		{[]string{"*.demo.example.com"}, nil, "widgets"},
		{nil, []string{"*.example.com"}, "pods"},
		{[]string{"pods", "secrets"}, []string{"s*"}, "pods"},
	} {
		withCluster(t, Options{Include: test.cache, Exclude: test.noCache}, func(c *cluster) {
			var cached []string
			for _, path := range []string{podsPath, secretsPath, widgetsPath} {
				c.warm(path)
				if c.count("ann GET "+path) == 0 {
					cached = append(cached, path[strings.LastIndex(path, "/")+1:])
				}
			}
			if got := strings.Join(cached, " "); got != test.cached {
				c.Errorf("--cache %q --no-cache %q: the relay caches %s, want %s", test.cache, test.noCache, got,
					test.cached)
			}
		})
	}
	if err := CheckPatterns([]string{"*.apps", "pods", "[a"}); err == nil {
		t.Error("the pattern [a is accepted")
	}
}

// gizmosPath is the path of a custom resource that a test adds and removes.
const gizmosPath = "/apis/demo.example.com/v1/namespaces/a/gizmos"

func TestNewResourcesAreCachedAndRemovedOnesEnd(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		gizmos, err := kubeapi.ParseResource("gizmos.v1.demo.example.com=Gizmo")
		if err != nil {
			c.Fatal(err)
		}
		with := newAPI(c, append(c.api.Resources(), gizmos)...)
		if r := c.send("of-ann", "GET", c.relayed+gizmosPath, ""); r.code != http.StatusNotFound {
			c.Fatalf("got %d %s, want 404", r.code, r.body)
		}
		without := c.api
		c.change(func() { c.api = with })
		if body := c.get("of-ann", gizmosPath); !strings.Contains(body, "GizmoList") {
			c.Errorf("got %s, want a list", body)
		}
		before := c.count("ann GET " + gizmosPath)
		time.Sleep(discoveryInterval + time.Second)
		c.warm(gizmosPath)
		c.create(gizmosPath, named("one"))
		c.get("of-ann", gizmosPath)
		if n := c.count("ann GET " + gizmosPath); n != before {
			c.Errorf("the API server received %d lists of the new resource, want none", n-before)
		}
		opened := time.Now()
		time.AfterFunc(time.Second, func() {
			c.change(func() { c.api = without })
			_ = with.Drain(c.Context())
		})
		body := c.get("of-ann", gizmosPath+"?watch=true&timeoutSeconds=600")
		if !strings.Contains(body, `"type":"ADDED"`) || strings.Contains(body, "ERROR") ||
			time.Since(opened) > discoveryInterval+time.Minute {
			c.Errorf("after %v: got %s, want a clean end soon after the resource was removed", time.Since(opened), body)
		}
		if r := c.send("of-ann", "GET", c.relayed+gizmosPath, ""); r.code != http.StatusNotFound {
			c.Errorf("got %d %s, want 404", r.code, r.body)
		}
	})
}

func TestWhatTheRelayMayNotReadPassesThrough(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.change(func() { c.refuse = "pods" })
		for range 2 {
			c.get("of-ann", podsPath)
		}
		c.get("of-ann", widgetsPath)
		if n := c.count("ann GET " + podsPath); n != 2 {
			c.Errorf("the API server received %d lists, want 2", n)
		}
		c.change(func() { c.refuse = "" })
		time.Sleep(refusalTime)
		c.warm(podsPath)
		if n := c.count("ann GET " + podsPath); n != 2 {
			c.Errorf("the API server received %d lists, want the third one from the cache", n)
		}
	})
}

func TestAServerThatJustStartedKeepsItsCaches(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		c.get("of-ann", podsPath)
		whole, bare := c.api, newAPI(c, kubeapi.DefaultResources()[1])
		time.AfterFunc(time.Second, func() {
			c.change(func() { c.api = bare }) // all of it is unknown, and forbidden
			c.servers[strings.TrimPrefix(c.direct, "http://")].ResetConns()
			time.Sleep(discoveryInterval)
			c.change(func() { c.api = whole })
		})
		opened := time.Now()
		c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=60&resourceVersion=0")
		if time.Since(opened) < time.Minute {
			c.Errorf("the watch ended after %v", time.Since(opened))
		}
	})
}

func TestWhatExceedsTheMemoryPassesThrough(t *testing.T) {
	withCluster(t, Options{Memory: 1 << 20}, func(c *cluster) {
		large := `{"metadata":{"name":"%s"},"spec":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`
		c.create(podsPath, named("one"))
		for i := range 4 {
			c.create(widgetsPath, fmt.Sprintf(large, fmt.Sprint("w", i)))
		}
		lists := func(path string) (passed bool) {
			before := c.count("ann GET " + path)
			c.warm(path)
			return c.count("ann GET "+path) > before
		}
		if lists(podsPath) {
			c.Error("the small resource passes through, want it cached")
		}
		if !lists(widgetsPath) {
			c.Error("the large resource is cached, want it to pass through")
		}
		for i := range 4 {
			c.create(podsPath, fmt.Sprintf(large, fmt.Sprint("p", i)))
			time.Sleep(2 * time.Second)
		}
		if !lists(podsPath) {
			c.Error("want the resource that has grown to pass through")
		}
		for i := range 4 {
			c.send(relayToken, "DELETE", c.direct+podsPath+"/"+fmt.Sprint("p", i), "")
		}
		time.Sleep(oversizeTime)
		if lists(podsPath) {
			c.Error("want the resource that has shrunk to be cached again")
		}
	})
}

func TestUpgradesPassThrough(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		const path = podsPath + "/one/exec?command=a%3Bb&command=c"
		c.change(func() { c.others = http.HandlerFunc(echoUpgrade) })
		r, err := http.NewRequest("POST", c.relayed+path, nil)
		if err != nil {
			c.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer of-ann"}, "Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}
		response, err := c.client.RoundTrip(r)
		if err != nil {
			c.Fatal(err)
		}
		stream, ok := response.Body.(io.ReadWriteCloser)
		if response.StatusCode != http.StatusSwitchingProtocols || !ok {
			c.Fatalf("got %s, want 101", response.Status)
		}
		defer stream.Close()
		fmt.Fprint(stream, "ping")
		want := "Bearer of-ann SPDY/3.1 command=a%3Bb&command=c ping"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(stream, got); err != nil || string(got) != want {
			c.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
}

// echoUpgrade switches the protocol, sends what the request contained, and then what it receives.
func echoUpgrade(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n%s %s %s ",
		r.Header.Get("Upgrade"), r.Header.Get("Authorization"), r.Header.Get("Upgrade"), r.URL.RawQuery)
	_, _ = io.Copy(conn, buffered) // until the client disconnects
}

func TestWithoutTheServerNothingIsAllowed(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.get("of-ann", podsPath)
		c.servers[strings.TrimPrefix(c.direct, "http://")].Kill()
		time.Sleep(reviewLifetime)
		for _, path := range []string{podsPath + "?resourceVersion=0", "/version"} {
			r := c.send("of-ann", "GET", c.relayed+path, "")
			if r.code != http.StatusServiceUnavailable || !strings.Contains(r.body, `"kind":"Status"`) ||
				!strings.Contains(r.body, "cannot reach the API server") {
				c.Errorf("%s: got %d %s, want 503 with a Status", path, r.code, r.body)
			}
		}
	})
}

// The first list of a resource passes through, so it waits for no review. The review permits the
// cache.
func TestFirstListsDoNotWaitForReviews(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.change(func() { c.outage = true })
		c.get("of-ann", podsPath)
		synctest.Wait()
		if n := len(c.handler.caches.all()); n != 0 {
			c.Errorf("%d caches are open without a review, want none", n)
		}
		c.change(func() {
			c.outage, c.allowed = false, func(u watchserver.User, _ access) bool { return u.Name != "bob" }
		})
		if r := c.send("of-bob", "GET", c.relayed+podsPath, ""); r.code != http.StatusForbidden {
			c.Errorf("bob: got %d %s, want 403", r.code, r.body)
		}
		synctest.Wait()
		if n := len(c.handler.caches.all()); n != 0 {
			c.Errorf("%d caches are open after a request that is not allowed, want none", n)
		}
		c.get("of-ann", podsPath)
		synctest.Wait()
		if n := len(c.handler.caches.all()); n != 1 {
			c.Errorf("%d caches are open after a list, want one", n)
		}
	})
}

// A lateSource delivers the events of its watches a second late.
type lateSource struct{ listwatch.Source }

func (s lateSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return lateWatcher{w}, err
}

type lateWatcher struct{ listwatch.Watcher }

func (w lateWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	<-time.After(time.Second)
	return n, err
}

// A list of the newest state may be newer than the cache, so it does not show that later reads of
// the cache include a deletion.
func TestDeletedObjectsStayDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := kubeapi.DefaultResources()[0]
		objects, err := memory.Open(memory.Options{}).Collection(pods.CollectionSpec())
		if err != nil {
			t.Fatal(err)
		}
		pod, err := objects.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"default"}}`))
		if err != nil {
			t.Fatal(err)
		}
		relayed := relay.Open(lateSource{objects}, relay.Options{})
		defer relayed.Close()
		k := &cache{Relay: relayed}
		time.Sleep(time.Minute)
		if _, err := objects.Delete(t.Context(), pod.Key, listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		k.writes.add(0)
		for _, start := range []listwatch.Start{listwatch.StartNewest, listwatch.StartAny, listwatch.StartAny} {
			page, err := k.List(t.Context(), listwatch.Query{Start: start})
			if err != nil || len(page.Items) != 0 {
				t.Errorf("start %d: got %d pods, %v; want none", start, len(page.Items), err)
			}
		}
	})
}
