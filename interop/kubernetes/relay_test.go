//go:build !race

package kubernetes

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const relayGroup = "demo.example.com"

var (
	relayWidgets = schema.GroupVersionResource{Group: relayGroup, Version: "v1", Resource: "widgets"}
	relayGadgets = schema.GroupVersionResource{Group: relayGroup, Version: "v1", Resource: "gadgets"}
)

// oneResource makes a relay serve widgets.
var oneResource = []string{"--resource", "widgets.v1." + relayGroup}

// writeKubeconfig writes a kubeconfig file for s and returns its path.
func writeKubeconfig(t *testing.T, s *apiserver.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: s, user: u}}]
clusters: [{name: s, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %q}}]
`, s.URL, base64.StdEncoding.EncodeToString(s.CA), s.Token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A relayProcess is a relay in a separate process.
type relayProcess struct {
	*program.Process
	debug string // the address of --debug-addr, if it is set
}

// startRelay runs a relay that listens at addr until the test ends. what are the flags that select
// what it relays.
func startRelay(t *testing.T, path, addr, config string, what ...string) *relayProcess {
	t.Helper()
	args := append([]string{"relay", "--addr", addr, "--kubeconfig", config}, what...)
	return &relayProcess{Process: program.Start(t, path, args...)}
}

func (p *relayProcess) addr() string { return strings.TrimPrefix(p.URL(), "http://") }

func (p *relayProcess) config() *rest.Config {
	return &rest.Config{Host: p.URL(), QPS: 10000, Burst: 10000}
}

func unstructuredWidget(name string, n int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": relayGroup + "/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"odd": fmt.Sprint(n%2 == 1)}},
		"spec":     map[string]any{"n": int64(n)},
	}}
}

// A relayTest is an API server with a relay in front of it.
type relayTest struct {
	*testing.T
	*relayProcess
	server  *apiserver.Server
	direct  dynamic.NamespaceableResourceInterface // the widgets of the API server
	written int                                    // the number of writes
}

// write creates, updates or deletes a widget, count times, and returns the version of the last
// create or update.
func (s *relayTest) write(count int) string {
	s.Helper()
	widgets, last := s.direct.Namespace("default"), ""
	for range count {
		s.written++
		w := unstructuredWidget(fmt.Sprint("w-", s.written%7), s.written)
		stored, err := widgets.Create(s.Context(), w, metav1.CreateOptions{})
		switch {
		case errors.IsAlreadyExists(err) && s.written%3 == 0:
			err = widgets.Delete(s.Context(), w.GetName(), metav1.DeleteOptions{})
		case errors.IsAlreadyExists(err):
			if stored, err = widgets.Get(s.Context(), w.GetName(), metav1.GetOptions{}); err == nil {
				w.SetResourceVersion(stored.GetResourceVersion())
				stored, err = widgets.Update(s.Context(), w, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			s.Fatal(err)
		}
		if stored != nil && stored.GetResourceVersion() != "" {
			last = stored.GetResourceVersion()
		}
	}
	return last
}

func objectsByName(l *unstructured.UnstructuredList) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, o := range l.Items {
		all[o.GetName()] = o.Object
	}
	return all
}

// startWidgetInformer runs an informer of all widgets until the test ends, and waits until it has
// synced.
func startWidgetInformer(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	i := runWidgetInformer(t, c)
	waitForSync(t, i)
	return i
}

func waitForSync(t *testing.T, i cache.SharedIndexInformer) {
	t.Helper()
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("the informer did not sync")
	}
}

// runWidgetInformer runs an informer of all widgets until the test ends.
func runWidgetInformer(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	i := dynamicinformer.NewDynamicSharedInformerFactory(newDynamicClient(t, c), 0).ForResource(relayWidgets).Informer()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return i
}

func storedByName(i cache.SharedIndexInformer) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, o := range i.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		all[u.GetName()] = u.Object
	}
	return all
}

func TestRelayReplacesAKubernetesServer(t *testing.T) {
	server := apiserver.Start(t)
	createCRD(t, server.Config(), relayWidgets, "Widget")
	createCRD(t, server.Config(), relayGadgets, "Gadget")
	s := &relayTest{T: t, server: server, direct: newDynamicClient(t, server.Config()).Resource(relayWidgets)}
	s.write(20)
	path, config := program.Build(t), writeKubeconfig(t, server)
	s.relayProcess = startRelay(t, path, ports.Address(t), config, oneResource...)
	relayed := newDynamicClient(t, s.config()).Resource(relayWidgets)
	counter := new(listCounter)
	counted := s.config()
	counted.Wrap(counter.count)
	informers := []cache.SharedIndexInformer{startWidgetInformer(t, counted), startWidgetInformer(t, counted)}

	t.Run("DiscoveryShowsRelayedResources", s.testDiscovery)
	t.Run("ReadsSeeEveryAcknowledgedWrite", func(t *testing.T) {
		for range 20 {
			s.write(1)
			s.wantSameList(t, relayed, metav1.ListOptions{})
		}
		s.wantSameList(t, relayed, metav1.ListOptions{LabelSelector: "odd=true"})
		s.wantSameList(t, relayed, metav1.ListOptions{FieldSelector: "metadata.name=w-3"})
	})
	t.Run("IdleResourceOfABusyServerIsUpToDate", func(t *testing.T) {
		busy := newDynamicClient(t, server.Config()).Resource(relayGadgets).Namespace("default")
		g := unstructuredWidget("g", 1)
		g.SetKind("Gadget")
		if _, err := busy.Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.wantSameList(t, relayed, metav1.ListOptions{})
	})
	t.Run("WritesAreRefused", func(t *testing.T) {
		_, err := relayed.Namespace("default").Create(t.Context(), unstructuredWidget("x", 1), metav1.CreateOptions{})
		if !errors.IsMethodNotSupported(err) {
			t.Errorf("got %v, want MethodNotSupported", err)
		}
	})
	t.Run("KubectlReadsATable", func(t *testing.T) { testTable(t, s.config()) })
	t.Run("InformersSurviveTheRelay", func(t *testing.T) {
		before := counter.lists.Load()
		for range 3 {
			s.write(10)
			s.Kill()
			s.write(10)
			s.relayProcess = startRelay(t, path, s.addr(), config, oneResource...)
			s.write(10)
			// Before the relay is killed again, the informers must receive events from it.
			// client-go lists again after a watch that ends within a second without an event.
			s.waitForAgreement(t, informers...)
		}
		if after := counter.lists.Load(); after != before {
			t.Errorf("the informers listed %d times again, want them to resume", after-before)
		}
	})
}

// A listCounter counts lists, including streaming lists.
type listCounter struct{ lists atomic.Int64 }

func (c *listCounter) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
			c.lists.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func (s *relayTest) testDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(relayGroup + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	r := list.APIResources[0]
	if r.Name != "widgets" || r.Kind != "Widget" || !r.Namespaced ||
		fmt.Sprint(r.ShortNames, r.Verbs) != "[wi] [get list watch]" {
		t.Errorf("got %+v, want widgets with the verbs of reading", r)
	}
	for _, r := range list.APIResources {
		if strings.HasPrefix(r.Name, "gadgets") {
			t.Errorf("discovery shows %s, which is not relayed", r.Name)
		}
	}
}

// wantSameList compares a list of the relay with the list of the API server.
func (s *relayTest) wantSameList(t *testing.T, relayed dynamic.ResourceInterface, o metav1.ListOptions) {
	t.Helper()
	want, err := s.direct.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := relayed.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objectsByName(want), objectsByName(got)); diff != "" {
		t.Errorf("%+v: the lists differ (-API server +relay):\n%s", o, diff)
	}
	// The relay's list must also equal the API server's list at the same version.
	o.ResourceVersion, o.ResourceVersionMatch = got.GetResourceVersion(), metav1.ResourceVersionMatchExact
	if want, err = s.direct.List(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objectsByName(want), objectsByName(got)); diff != "" {
		t.Errorf("at %s: the lists differ (-API server +relay):\n%s", o.ResourceVersion, diff)
	}
}

// testTable reads a table as kubectl get does.
func testTable(t *testing.T, c *rest.Config) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.RESTClient().Get().AbsPath("/apis/"+relayGroup+"/v1/namespaces/default/widgets").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind":"Table"`, `"name":"Name"`, `"cells":["w-`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("got %s, want a table", data)
		}
	}
}

// waitForAgreement waits until the informers hold the objects of the API server.
func (s *relayTest) waitForAgreement(t *testing.T, informers ...cache.SharedIndexInformer) {
	t.Helper()
	list, err := s.direct.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, diff := objectsByName(list), ""
	defer func() {
		if t.Failed() {
			t.Logf("the objects differ (-API server +informer):\n%s", diff)
		}
	}()
	for n, i := range informers {
		eventually(t, fmt.Sprint("objects of informer ", n), func() bool {
			diff = cmp.Diff(want, storedByName(i))
			return diff == ""
		})
	}
}
