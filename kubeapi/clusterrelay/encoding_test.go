package clusterrelay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/watchserver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	// typedClient is the Accept header of client-go's typed clients.
	typedClient = protobufType + ",application/json"
)

// A protobufSource shows pods in Protobuf, as a kube-apiserver does.
type protobufSource struct{ listwatch.Source }

func (s protobufSource) Describe() listwatch.Description {
	d := listwatch.Describe(s.Source)
	d.Encoding = kubeproto.Encoding{}
	return d
}

func (s protobufSource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := s.Source.List(ctx, q)
	page.Items = slices.Clone(page.Items)
	for i, o := range page.Items {
		page.Items[i] = podInProtobuf(o)
	}
	return page, err
}

func (s protobufSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return protobufWatcher{w}, err
}

type protobufWatcher struct{ listwatch.Watcher }

func (w protobufWatcher) Next(ctx context.Context, events []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, events)
	for i := range n {
		switch e := &events[i]; e.Type {
		case listwatch.Added, listwatch.Modified, listwatch.Deleted:
			e.Object = podInProtobuf(e.Object)
		}
	}
	return n, err
}

func podInProtobuf(o *listwatch.Object) *listwatch.Object {
	var pod corev1.Pod
	err := json.Unmarshal(o.Data, &pod)
	encoded := *o
	if err == nil {
		encoded.Data, err = pod.Marshal()
	}
	if err == nil {
		envelope := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: encoded.Data}
		encoded.Data, err = envelope.Marshal()
	}
	if err != nil {
		panic(err)
	}
	encoded.Data = append([]byte("k8s\x00"), encoded.Data...)
	return &encoded
}

// serveProtobuf serves the pods in Protobuf.
func (c *cluster) serveProtobuf(w http.ResponseWriter, r *http.Request) {
	e := watchserver.Endpoint{Source: protobufSource{c.pods}}
	if strings.HasPrefix(r.URL.Path, podsPath) {
		e.Namespace = "a"
	}
	c.protobuf.Serve(w, r, e)
}

// decodePod returns the pod in a body or a frame.
func decodePod(c *cluster, data []byte) *listwatch.Object {
	c.Helper()
	o, err := kubeproto.Encoding{}.Read(data)
	if err != nil {
		c.Fatal(err)
	}
	return o
}

func TestReadersInProtobufShareOneCache(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient)
		before := c.count("ann GET " + podsPath)
		for range 2 {
			r := c.send("of-ann", "GET", c.relayed+podsPath+"?resourceVersion=0", "", "Accept", typedClient)
			list, err := kubeproto.Encoding{}.ReadList(strings.NewReader(r.body), 1<<20)
			if err != nil || len(list.Items) != 1 || list.Kind != "PodList" ||
				r.header.Get("Content-Type") != protobufType {
				c.Fatalf("got %d %s, %+v, %v, want a list of one pod in Protobuf", r.code, r.header, list, err)
			}
			one := c.get("of-ann", podsPath+"/one?resourceVersion=0", "Accept", typedClient)
			if o := decodePod(c, []byte(one)); !bytes.Equal(o.Data, list.Items[0].Data) {
				c.Errorf("a get returns %q, a list %q", o.Data, list.Items[0].Data)
			}
			w := c.send("of-ann", "GET", c.relayed+podsPath+"?watch=1&timeoutSeconds=1", "", "Accept",
				protobufType+";stream=watch,application/json;stream=watch")
			event, err := kubeproto.Framing{}.NewDecoder(strings.NewReader(w.body), 1<<20).Decode()
			if err != nil || !bytes.Equal(event.Object, list.Items[0].Data) {
				c.Errorf("got the event %+v, %v, want the pod", event, err)
			}
		}
		metadata := c.send("of-ann", "GET", c.relayed+podsPath+"?resourceVersion=0", "", "Accept",
			protobufType+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
		list, err := kubeproto.Encoding{}.ReadList(strings.NewReader(metadata.body), 1<<20)
		if err != nil || list.Kind != "PartialObjectMetadataList" || len(list.Items) != 1 {
			c.Errorf("got %+v, %v, want metadata", list, err)
		}
		if body := c.get("of-ann", podsPath+"?resourceVersion=0&fields=metadata.name", "Accept",
			typedClient); !strings.HasPrefix(body, "{") {
			c.Errorf("fields: got %q, want JSON", body)
		}
		if n := c.count("ann GET "+podsPath) - before; n != 0 {
			c.Errorf("the API server received %d reads, want none", n)
		}
		if running := c.handler.caches.all(); len(running) != 2 {
			c.Errorf("%d caches are open, want one of each encoding", len(running))
		}
	})
}

func TestWritesAreVisibleInBothEncodings(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.warm(podsPath)
		c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient)
		for _, name := range []string{"a", "b"} {
			if r := c.send("of-ann", "POST", c.relayed+podsPath, named(name)); r.code != http.StatusCreated {
				c.Fatalf("create: got %d %s, want 201", r.code, r.body)
			}
			for _, accept := range []string{typedClient, "application/json"} {
				body := c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", accept)
				if !strings.Contains(body, name) {
					c.Errorf("%s: got %q, want the pod %s", accept, body, name)
				}
			}
		}
	})
}

func TestVersionsOfWritesAreReadInEachEncoding(t *testing.T) {
	o, err := listwatch.NewObject([]byte(`{"metadata":{"name":"a"}}`), 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	for contentType, body := range map[string]string{
		"application/json": string(o.Data), protobufType: string(podInProtobuf(o).Data), "": "",
	} {
		r := &http.Response{
			StatusCode: 201, Header: http.Header{"Content-Type": {contentType}},
			Body: io.NopCloser(strings.NewReader(body)),
		}
		if body == "" {
			r.Header = http.Header{"Preference-Applied": {"return=minimal"}, "Etag": {`"7"`}}
		}
		v := versionOf(r)
		if rest, err := io.ReadAll(r.Body); v != 7 || string(rest) != body || err != nil {
			t.Errorf("%s: got version %v, and the body %q, %v", contentType, v, rest, err)
		}
	}
}

// A kube-apiserver has no Protobuf for custom resources, and responds with status 406.
func TestResourcesWithoutProtobufAreReadInJSON(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(widgetsPath, named("one"))
		for range 2 {
			body := c.get("of-ann", widgetsPath+"?resourceVersion=0", "Accept", typedClient)
			if !strings.HasPrefix(body, "{") || !strings.Contains(body, `"name":"one"`) {
				c.Errorf("got %q, want JSON", body)
			}
		}
		if n := c.count("ann GET " + widgetsPath); n != 0 {
			c.Errorf("the API server received %d reads, want none", n)
		}
		widgets := cacheID{resourceID{"demo.example.com", "v1", "widgets"}, kubeproto.Encoding{}}
		if !c.handler.caches.excludes(widgets) {
			c.Error("the relay would request Protobuf again")
		}
		c.change(func() { c.api = newAPI(c) })
		time.Sleep(3 * discoveryInterval)
		if c.handler.caches.excludes(widgets) {
			c.Error("the relay remembers a resource that does not exist")
		}
	})
}

func TestUpgradedServersAreAskedForProtobufAgain(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		readsJSON := func() bool {
			return strings.HasPrefix(c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient), "{")
		}
		c.change(func() { c.isOld = true })
		if !readsJSON() {
			c.Error("got Protobuf before the upgrade, want JSON")
		}
		c.change(func() { c.isOld = false })
		time.Sleep(lackingTime / 2)
		if !readsJSON() {
			c.Errorf("the relay has requested Protobuf again within %v after the refusal", lackingTime)
		}
		time.Sleep(lackingTime/2 + discoveryInterval)
		if readsJSON() {
			c.Errorf("got JSON more than %v after the upgrade, want Protobuf", lackingTime)
		}
	})
}

// A reader must not wait for an encoding if a cache in another encoding can respond.
func TestLackingEncodingsAreRememberedInAnOutage(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(widgetsPath, named("one"))
		c.get("of-ann", widgetsPath+"?resourceVersion=0", "Accept", typedClient)
		c.change(func() { c.down = errors.New("the API server does not respond") })
		c.servers[strings.TrimPrefix(c.direct, "http://")].ResetConns()
		time.Sleep(lackingTime + discoveryInterval)
		widgets := cacheID{resourceID{"demo.example.com", "v1", "widgets"}, kubeproto.Encoding{}}
		if !c.handler.caches.excludes(widgets) {
			c.Error("the relay would wait for Protobuf, but the API server is down")
		}
		c.change(func() { c.down = nil })
		time.Sleep(discoveryInterval)
		if c.handler.caches.excludes(widgets) {
			c.Error("the relay would not request Protobuf when the API server is back")
		}
	})
}

func TestMemoryPrefersTheRunningEncoding(t *testing.T) {
	withCluster(t, Options{Memory: 8 << 10}, func(c *cluster) {
		c.create(podsPath, `{"metadata":{"name":"one","annotations":{"a":"`+strings.Repeat("x", 4<<10)+`"}}}`)
		c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient)
		before := c.count("ann GET " + podsPath)
		if body := c.get("of-ann", podsPath+"?resourceVersion=0", "Accept",
			"application/json,"+protobufType); strings.HasPrefix(body, "{") || c.count("ann GET "+podsPath) != before {
			c.Errorf("got %q, want the running cache", body)
		}
		if body := c.get("of-ann", podsPath+"?resourceVersion=0"); !strings.HasPrefix(body, "{") ||
			c.count("ann GET "+podsPath) != before+1 {
			c.Errorf("got %q, want the response of the API server", body)
		}
	})
}

func TestAuditMeasuresProtobuf(t *testing.T) {
	withCluster(t, Options{Audit: true}, func(c *cluster) {
		c.create(podsPath, named("one"))
		c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient)
		synctest.Wait()
		for _, phase := range []string{"Running", "Failed"} {
			if r := c.send("of-ann", "PATCH", c.relayed+podsPath+"/one/status", `{"status":{"phase":"`+phase+`"}}`,
				"Content-Type", "application/merge-patch+json"); r.code != http.StatusOK {
				c.Fatalf("got %d %s", r.code, r.body)
			}
		}
		synctest.Wait()
		changes := c.handler.caches.audit.report().Changes
		if len(changes) != 1 || changes[0].Resource != "pods.v1 (protobuf)" || changes[0].Changes.Events != 2 {
			c.Fatalf("got %+v, want two changes of pods in Protobuf", changes)
		}
		for _, s := range changes[0].Savings {
			if s.Parameter == "fields=-status" && s.Changes.Events == 2 {
				return
			}
		}
		c.Errorf("got %+v, want both changes without the status", changes[0].Savings)
	})
}

func TestListsContinueInAnotherEncoding(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		for _, name := range []string{"a", "b"} {
			c.create(podsPath, named(name))
		}
		c.warm(podsPath)
		c.get("of-ann", podsPath+"?resourceVersion=0", "Accept", typedClient)
		before := c.count("ann GET " + podsPath)
		token := c.token()
		body := c.get("of-ann", podsPath+"?limit=1&continue="+token, "Accept", typedClient)
		list, err := kubeproto.Encoding{}.ReadList(strings.NewReader(body), 1<<20)
		if err != nil || len(list.Items) != 1 || list.Items[0].Key.Name != "b" || list.Continue != "" {
			c.Errorf("got %+v, %v, want the second pod", list, err)
		}
		if n := c.count("ann GET "+podsPath) - before; n != 0 {
			c.Errorf("the API server received %d reads, want none", n)
		}
	})
}

// The clients of this project may ask for less in each encoding.
func TestOwnParametersWorkInProtobuf(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		remote := &client.Remote{
			URL: c.relayed + podsPath, HTTPClient: &http.Client{Transport: c.client},
			Framings: []framing.Framer{kubeproto.Framing{}},
			Header: func(context.Context, bool) (http.Header, error) {
				return http.Header{"Authorization": {"Bearer of-ann"}}, nil
			},
		}
		defer remote.Close()
		watch := func(q listwatch.Query, n int) (all []listwatch.Event) {
			c.Helper()
			w, err := remote.Watch(c.Context(), q)
			if err != nil {
				c.Fatal(err)
			}
			defer w.Close()
			for e, err := range listwatch.All(c.Context(), w) {
				if all = append(all, e); err != nil || len(all) == n {
					break
				}
			}
			return all
		}
		state := watch(listwatch.Query{Bookmarks: true}, 2)
		if len(state) != 2 || state[1].Type != listwatch.Synced {
			c.Fatalf("got %v, want one pod and the end of the state", state)
		}
		c.create(podsPath, named("two"))
		c.send(relayToken, "DELETE", c.direct+podsPath+"/one", "")
		time.Sleep(time.Second)
		changed := watch(listwatch.Query{Bookmarks: true, Since: state[1].State()}, 3)
		if len(changed) != 3 || changed[0].Object.Key.Name != "two" || changed[1].Type != listwatch.Deleted ||
			!changed[1].Initial {
			c.Errorf("got %v, want the difference", changed)
		}
		r := c.send("of-ann", "GET", c.relayed+podsPath+"?watch=1&timeoutSeconds=1&conflate=250ms", "", "Accept",
			typedClient)
		if r.header.Get("Listwatch-Conflate") == "" || r.header.Get("Content-Type") != protobufType+";stream=watch" {
			c.Errorf("got %v, want a conflated watch in Protobuf", r.header)
		}
	})
}
