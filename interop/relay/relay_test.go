//go:build !race

package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const group = "demo.example.com"

var (
	widgets = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}
)

// patience is how long anything may take.
const patience = time.Minute

// define makes a custom resource whose plural and kind are given, and returns when it is served.
func define(t *testing.T, c *rest.Config, plural, kind string) {
	t.Helper()
	client, err := clientset.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	keep := true
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List", ShortNames: []string{plural[:2]}},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	things := dynamicClient(t, c).Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	await(t, plural, func() error {
		_, err := things.List(t.Context(), metav1.ListOptions{})
		return err
	})
}

func dynamicClient(t *testing.T, c *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// await returns when check has no error any more.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// kubeconfig writes how s is reached.
func kubeconfig(t *testing.T, s *apiserver.Server) string {
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

// A process is a relay of its own.
type process struct {
	*exec.Cmd
	url  string
	logs *bytes.Buffer
}

func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "listwatch")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", file, "./cmd/listwatch")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

// start runs the relay; addr may be that of one before.
func start(t *testing.T, program, addr, config string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, "relay", "--addr", addr, "--kubeconfig", config, "--resource", "widgets.v1."+group), logs: new(bytes.Buffer)}
	p.Stderr = p.logs
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("relay: %s", p.logs)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Relaying on "); ok {
			p.url, _, _ = strings.Cut(rest, " ")
			break
		}
	}
	if p.url == "" {
		t.Fatalf("listwatch relay: %v\n%s", lines.Err(), p.logs)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the program
	return p
}

func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended
	_ = p.Wait()
}

func (p *process) addr() string { return strings.TrimPrefix(p.url, "http://") }

func (p *process) config() *rest.Config { return &rest.Config{Host: p.url, QPS: 10000, Burst: 10000} }

func widget(name string, n int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "labels": map[string]any{"odd": fmt.Sprint(n%2 == 1)}},
		"spec": map[string]any{"n": int64(n)},
	}}
}

// A stand is an API server, a relay before it, and writers and readers.
type stand struct {
	*testing.T
	*process
	server *apiserver.Server
	direct dynamic.NamespaceableResourceInterface
	n      int
}

// write makes some writes of every kind, and returns the version of the last.
func (s *stand) write(count int) string {
	s.Helper()
	things, last := s.direct.Namespace("default"), ""
	for range count {
		s.n++
		w := widget(fmt.Sprint("w-", s.n%7), s.n)
		made, err := things.Create(s.Context(), w, metav1.CreateOptions{})
		switch {
		case errors.IsAlreadyExists(err) && s.n%3 == 0:
			err = things.Delete(s.Context(), w.GetName(), metav1.DeleteOptions{})
		case errors.IsAlreadyExists(err):
			if made, err = things.Get(s.Context(), w.GetName(), metav1.GetOptions{}); err == nil {
				w.SetResourceVersion(made.GetResourceVersion())
				made, err = things.Update(s.Context(), w, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			s.Fatal(err)
		}
		if made != nil && made.GetResourceVersion() != "" {
			last = made.GetResourceVersion()
		}
	}
	return last
}

func objects(l *unstructured.UnstructuredList) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, o := range l.Items {
		all[o.GetName()] = o.Object
	}
	return all
}

// follow starts an informer of all widgets, as c reaches them.
func follow(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	i := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient(t, c), 0).ForResource(widgets).Informer()
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
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return i
}

func held(i cache.SharedIndexInformer) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, o := range i.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		all[u.GetName()] = u.Object
	}
	return all
}

func TestTheRelayStandsForAKubernetesAPIServer(t *testing.T) {
	server := apiserver.Start(t)
	define(t, server.Config(), "widgets", "Widget")
	define(t, server.Config(), "gadgets", "Gadget")
	s := &stand{T: t, server: server, direct: dynamicClient(t, server.Config()).Resource(widgets)}
	s.write(20)
	program, config := build(t), kubeconfig(t, server)
	s.process = start(t, program, "127.0.0.1:0", config)
	relayed := dynamicClient(t, s.config()).Resource(widgets)
	states := new(stateCounter)
	counted := s.config()
	counted.Wrap(states.wrap)
	informers := []cache.SharedIndexInformer{follow(t, counted), follow(t, counted)}

	t.Run("DiscoveryTellsWhatCanBeRead", s.discovery)
	t.Run("ReadsSeeEveryAcknowledgedWrite", func(t *testing.T) {
		for range 20 {
			s.write(1)
			s.same(t, relayed, metav1.ListOptions{})
		}
		s.same(t, relayed, metav1.ListOptions{LabelSelector: "odd=true"})
		s.same(t, relayed, metav1.ListOptions{FieldSelector: "metadata.name=w-3"})
	})
	t.Run("AQuietResourceOfABusyServerIsReadFresh", func(t *testing.T) {
		busy := dynamicClient(t, server.Config()).Resource(gadgets).Namespace("default")
		g := widget("g", 1)
		g.SetKind("Gadget")
		if _, err := busy.Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.same(t, relayed, metav1.ListOptions{})
	})
	t.Run("WritesAreRefused", func(t *testing.T) {
		_, err := relayed.Namespace("default").Create(t.Context(), widget("x", 1), metav1.CreateOptions{})
		if !errors.IsMethodNotSupported(err) {
			t.Errorf("got %v, want that it is not supported", err)
		}
	})
	t.Run("KubectlReadsATable", func(t *testing.T) { table(t, s.config()) })
	t.Run("InformersOutliveTheRelay", func(t *testing.T) {
		before := states.asked.Load()
		for range 3 {
			s.write(10)
			s.kill()
			s.write(10)
			s.process = start(t, program, s.addr(), config)
			s.write(10)
		}
		s.agree(t, informers...)
		if after := states.asked.Load(); after != before {
			t.Errorf("informers asked %d times for the state again, though nothing was lost", after-before)
		}
	})
}

// A stateCounter counts how often the state is asked for, by a list or by a watch that begins with it.
type stateCounter struct{ asked atomic.Int64 }

func (c *stateCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
			c.asked.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *stand) discovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(group + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	r := list.APIResources[0]
	if r.Name != "widgets" || r.Kind != "Widget" || !r.Namespaced || fmt.Sprint(r.ShortNames, r.Verbs) != "[wi] [get list watch]" {
		t.Errorf("got %+v, want widgets, to be read", r)
	}
	for _, r := range list.APIResources {
		if strings.HasPrefix(r.Name, "gadgets") {
			t.Errorf("%s is there, and is not relayed", r.Name)
		}
	}
}

// same compares what the relay answers to a list with what the API server has.
func (s *stand) same(t *testing.T, relayed dynamic.ResourceInterface, o metav1.ListOptions) {
	t.Helper()
	there, err := s.direct.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	here, err := relayed.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects(there), objects(here)); diff != "" {
		t.Errorf("%+v: the API server's (-) and the relay's (+) differ:\n%s", o, diff)
	}
	// An exact list of the same version is the same, too.
	o.ResourceVersion, o.ResourceVersionMatch = here.GetResourceVersion(), metav1.ResourceVersionMatchExact
	if there, err = s.direct.List(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects(there), objects(here)); diff != "" {
		t.Errorf("at %s: the API server's (-) and the relay's (+) differ:\n%s", o.ResourceVersion, diff)
	}
}

// table reads as kubectl get does.
func table(t *testing.T, c *rest.Config) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.RESTClient().Get().AbsPath("/apis/"+group+"/v1/namespaces/default/widgets").
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

// agree waits until informers hold what the API server has.
func (s *stand) agree(t *testing.T, informers ...cache.SharedIndexInformer) {
	t.Helper()
	there, err := s.direct.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := objects(there)
	for n, i := range informers {
		await(t, fmt.Sprint("informer ", n), func() error {
			if diff := cmp.Diff(want, held(i)); diff != "" {
				return fmt.Errorf("the API server's (-) and the informer's (+) differ:\n%s", diff)
			}
			return nil
		})
	}
}
