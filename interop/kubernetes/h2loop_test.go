//go:build !race

package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/transport/h2"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A loopServer is a Kubernetes API server from Kubernetes' unmodified library, but with our
// implementation of HTTP/2. It has the custom resource widgetGVR.
type loopServer struct {
	*apiserver.Server
	dials atomic.Int64 // the number of connections opened with clientConfig
}

func startLoopServer(t *testing.T) *loopServer {
	t.Helper()
	s := &loopServer{Server: apiserver.StartWith(t, apiserver.Options{
		Configure: func(hs *http.Server) { h2.Configure(hs, h2.Config{}) },
	})}
	createCRD(t, s.Config(), widgetGVR, "Widget")
	return s
}

// clientConfig is like Config, but counts the connections in s.dials.
func (s *loopServer) clientConfig() *rest.Config {
	c := s.Config()
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		s.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return c
}

func (s *loopServer) widgets(t *testing.T, namespace string) dynamic.ResourceInterface {
	t.Helper()
	return newDynamicClient(t, s.clientConfig()).Resource(widgetGVR).Namespace(namespace)
}

func newWidget(name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(widgetGVR.GroupVersion().WithKind("Widget"))
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

func TestOurHTTP2ServesKubernetes(t *testing.T) {
	s := startLoopServer(t)
	t.Run("writes", func(t *testing.T) { testLoopWrites(t, s) })
	t.Run("large objects", func(t *testing.T) { testLoopLargeObjects(t, s) })
	t.Run("Protocol Buffers", func(t *testing.T) { testLoopProtobuf(t, s) })
	t.Run("watch list", func(t *testing.T) { testLoopWatchList(t, s) })
	t.Run("informer", func(t *testing.T) {
		r := widgetGVR
		r.Group = "informer." + r.Group
		createCRD(t, s.Config(), r, "Widget")
		e := serverEndpoint{config: s.Config(), group: r.GroupVersion(), kind: "Widget"}
		runScenario(t, scenarioServer{serverEndpoint: e}, r, newClientGoInformer)
	})
	t.Run("many streams", func(t *testing.T) { testLoopStreams(t, s) })
}

func testLoopWrites(t *testing.T, s *loopServer) {
	ctx, widgets := t.Context(), s.widgets(t, "writes")
	created := testkit.Must(widgets.Create(ctx, newWidget("a", map[string]string{"n": "1"}), metav1.CreateOptions{}))(t)
	if _, err := widgets.Create(ctx, newWidget("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: got error %v, want AlreadyExists", err)
	}
	stale := created.DeepCopy()
	created.SetLabels(map[string]string{"n": "2"})
	testkit.Must(widgets.Update(ctx, created, metav1.UpdateOptions{}))(t)
	if _, err := widgets.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: got error %v, want Conflict", err)
	}
	testkit.Must(widgets.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"n":"3"}}}`),
		metav1.PatchOptions{}))(t)
	testkit.Must(widgets.Apply(ctx, "b", newWidget("b", map[string]string{"n": "4"}),
		metav1.ApplyOptions{FieldManager: "test"}))(t)
	var got []string
	for options := (metav1.ListOptions{Limit: 1}); ; {
		list := testkit.Must(widgets.List(ctx, options))(t)
		for i := range list.Items {
			got = append(got, list.Items[i].GetName()+list.Items[i].GetLabels()["n"])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"a3", "b4"}, got); diff != "" {
		t.Errorf("pages of the list (-want +got):\n%s", diff)
	}
	if err := widgets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := widgets.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of a deleted object: got error %v, want NotFound", err)
	}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// testLoopLargeObjects tests bodies that exceed the initial flow-control windows of both
// directions.
func testLoopLargeObjects(t *testing.T, s *loopServer) {
	widgets := s.widgets(t, "large")
	for i := range 4 {
		o := newWidget(fmt.Sprint("large-", i), nil)
		o.Object["text"] = strings.Repeat("0123456789abcde\n", 50_000)
		testkit.Must(widgets.Create(t.Context(), o, metav1.CreateOptions{}))(t)
		got := testkit.Must(widgets.Get(t.Context(), o.GetName(), metav1.GetOptions{}))(t)
		if got.Object["text"] != o.Object["text"] {
			t.Errorf("%s: the received text differs from the sent one", o.GetName())
		}
	}
	o := newWidget("too-large", nil)
	o.Object["text"] = strings.Repeat("x", 4<<20)
	if _, err := widgets.Create(t.Context(), o, metav1.CreateOptions{}); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("4 MiB: got error %v, want RequestEntityTooLarge", err)
	}
	if list := testkit.Must(widgets.List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 4 {
		t.Errorf("got %d objects, want 4", len(list.Items))
	}
}

func testLoopProtobuf(t *testing.T, s *loopServer) {
	c := s.clientConfig()
	c.ContentType = "application/vnd.kubernetes.protobuf"
	definitions := testkit.Must(clientset.NewForConfig(c))(t).ApiextensionsV1().CustomResourceDefinitions()
	list := testkit.Must(definitions.List(t.Context(), metav1.ListOptions{}))(t)
	w := testkit.Must(definitions.Watch(t.Context(), metav1.ListOptions{}))(t)
	defer w.Stop()
	for range list.Items {
		if e := receive(t, w); e.Type != watch.Added {
			t.Errorf("got %s, want ADDED", e.Type)
		}
	}
}

func receive(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	e, ok := <-w.ResultChan()
	if !ok {
		t.Fatal("the watch has ended")
	}
	return e
}

func testLoopWatchList(t *testing.T, s *loopServer) {
	const objects = 500
	widgets, want := s.widgets(t, "watchlist"), map[string]bool{}
	for i := range objects {
		o := testkit.Must(widgets.Create(t.Context(), newWidget(fmt.Sprint("w", i), nil), metav1.CreateOptions{}))(t)
		want[o.GetName()] = true
	}
	yes := true
	w := testkit.Must(widgets.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true,
	}))(t)
	defer w.Stop()
	got := map[string]bool{}
	for {
		e := receive(t, w)
		o := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Bookmark {
			if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("got bookmark %v, want one that ends the initial events", o)
			}
			break
		}
		got[o.GetName()] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("initial events (-want +got):\n%s", diff)
	}
	testkit.Must(widgets.Patch(t.Context(), "w7", types.MergePatchType, []byte(`{"metadata":{"labels":{"n":"1"}}}`),
		metav1.PatchOptions{}))(t)
	if err := widgets.Delete(t.Context(), "w7", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
		if e := receive(t, w); e.Type != want || e.Object.(*unstructured.Unstructured).GetName() != "w7" {
			t.Errorf("got %s %v, want %s of w7", e.Type, e.Object, want)
		}
	}
}

// testLoopStreams opens more watches on a connection than the library's own server permits, and
// tests that the server's handlers return when their clients cancel the requests.
func testLoopStreams(t *testing.T, s *loopServer) {
	const streams = 300
	eventually(t, "the end of earlier watches", func() bool { return s.openWatches(t) == 0 })
	widgets := s.widgets(t, "streams")
	testkit.Must(widgets.List(t.Context(), metav1.ListOptions{}))(t)
	before := s.dials.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watches []watch.Interface
	for range streams {
		watches = append(watches, testkit.Must(widgets.Watch(ctx, metav1.ListOptions{}))(t))
	}
	for i := range 3 {
		name := fmt.Sprint("s", i)
		testkit.Must(widgets.Create(t.Context(), newWidget(name, nil), metav1.CreateOptions{}))(t)
		for _, w := range watches {
			if e := receive(t, w); e.Type != watch.Added || e.Object.(*unstructured.Unstructured).GetName() != name {
				t.Fatalf("got %s %v, want ADDED %s", e.Type, e.Object, name)
			}
		}
	}
	if got := s.openWatches(t); got != streams {
		t.Errorf("the server has %d watches, want %d", got, streams)
	}
	cancel()
	eventually(t, "the end of the watches", func() bool { return s.openWatches(t) == 0 })
	testkit.Must(widgets.List(t.Context(), metav1.ListOptions{}))(t)
	if n := s.dials.Load() - before; n > 0 {
		t.Errorf("the client opened %d further connections, want none", n)
	}
}

var watchMetric = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{.*resource="widgets".*\} (\d+)$`)

// openWatches returns the number of watches of widgets that the API server reports.
func (s *loopServer) openWatches(t *testing.T) (n int) {
	t.Helper()
	client := testkit.Must(clientset.NewForConfig(s.Config()))(t).Discovery().RESTClient()
	text := testkit.Must(client.Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	for _, m := range watchMetric.FindAllSubmatch(text, -1) {
		n += testkit.Must(strconv.Atoi(string(m[1])))(t)
	}
	return n
}
