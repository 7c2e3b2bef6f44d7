//go:build !race

package lives

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/listwatch/listwatch/interop/internal/controllermanager"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// programs is the environment variable with the directory of Kubernetes' programs.
	programs = "LISTWATCH_KUBERNETES"
	// definitionsFile has the definitions that both sides have from the start.
	definitionsFile = "testdata/definitions.yaml"
	// startTimeout limits the time until the controllers work. Only failing tests wait that long.
	startTimeout = 3 * time.Minute
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// A side is one of the two API servers that receive the same requests.
type side struct {
	name, url string
	client    *http.Client
	// present has the present objects by the qualified name of their resource.
	present map[string]cache.Indexer
	// fill replaces names in the bodies of requests by the addresses of webhooks. It may be nil.
	fill *strings.Replacer
}

// startKubernetes starts a kube-apiserver with the controllers that kubetest has, too.
func startKubernetes(t *testing.T) *side {
	t.Helper()
	k, kubeconfig := startAPIServer(t)
	// The garbage collector knows the definitions that exist when it starts. It notices later ones
	// only every thirty seconds.
	controllermanager.Start(t, filepath.Join(os.Getenv(programs), "kube-controller-manager"), kubeconfig,
		"garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller",
		"validatingadmissionpolicy-status-controller")
	k.awaitCollector(t)
	return k
}

// startAPIServer starts a kube-apiserver without controllers.
func startAPIServer(t *testing.T) (k *side, kubeconfig string) {
	t.Helper()
	directory := os.Getenv(programs)
	if directory == "" {
		t.Skip(programs + " names no directory; use make lives")
	}
	s := kubeapiserver.StartWith(t, filepath.Join(directory, "kube-apiserver"), kubeapiserver.Options{})
	return newSide(t, "Kubernetes", &rest.Config{
		Host: s.URL, BearerToken: s.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}), s.Kubeconfig
}

func startKubetest(t *testing.T) *side {
	t.Helper()
	return newSide(t, "kubetest", kubetest.New(t, kubetest.Options{}).Config())
}

// newSide returns a side that has the definitions, and follows its objects until the test ends.
func newSide(t *testing.T, name string, config *rest.Config) *side {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{name: name, url: config.Host, client: client, present: map[string]cache.Indexer{}}
	s.define(t)
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		for range kinds {
			<-ended
		}
	})
	for _, k := range kinds {
		i := dynamicinformer.NewFilteredDynamicInformer(dyn, k.resource(), metav1.NamespaceAll, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
		s.present[k.name()] = i.GetIndexer()
		go func() {
			i.RunWithContext(ctx)
			ended <- struct{}{}
		}()
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			t.Fatalf("%s: the informer of %s has not synced", name, k.name())
		}
	}
	return s
}

// define creates the definitions, and waits until their resources are served.
func (s *side) define(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(definitionsFile)
	if err != nil {
		t.Fatal(err)
	}
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var definition unstructured.Unstructured
		if err := d.Decode(&definition.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		body, err := definition.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		s.must(t, step{method: "POST", path: definitionsPath, body: string(body)})
	}
	for _, k := range kinds {
		if k.group == demoGroup {
			s.eventually(t, "a list of "+k.plural, step{method: "GET", path: k.path("", "")}, http.StatusOK)
		}
	}
}

// awaitCollector waits until the garbage collector collects config maps and custom resources.
func (s *side) awaitCollector(t *testing.T) {
	t.Helper()
	for _, k := range []kind{kindOf("configmaps"), kindOf("widgets")} {
		path := k.path("default", "orphan")
		s.must(t, step{method: "POST", path: k.path("default", ""), body: k.object("orphan", `"ownerReferences":[`+
			`{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"`+noUID+`"}]`)})
		s.eventually(t, "the collection of "+path, step{method: "GET", path: path}, http.StatusNotFound)
	}
}

// eventually sends a request repeatedly until the response has the wanted code.
func (s *side) eventually(t *testing.T, what string, r step, code int) {
	t.Helper()
	done := func(ctx context.Context) (bool, error) {
		a, err := s.send(ctx, r)
		return err == nil && a.code == code, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), pollInterval, startTimeout, true, done); err != nil {
		t.Fatalf("%s: %s: %v", s.name, what, err)
	}
}

// must sends a request, which must succeed.
func (s *side) must(t *testing.T, r step) {
	t.Helper()
	a, err := s.send(t.Context(), r)
	if err != nil || a.code >= http.StatusMultipleChoices {
		t.Fatalf("%s: %s %s: %d %s %v", s.name, r.method, r.path, a.code, a.body, err)
	}
}

// A response is the response to a request, before it is normalized.
type response struct {
	code     int
	body     []byte
	warnings []string
}

func (s *side) send(ctx context.Context, r step) (response, error) {
	body := r.body
	if s.fill != nil {
		body = s.fill.Replace(body)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, s.url+r.path+"?"+r.query, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	q.Header.Set("User-Agent", "lives/1.0")
	q.Header.Set("Accept", "application/json")
	if r.user != "" {
		q.Header.Set("Impersonate-User", r.user)
	}
	if contentType := r.contentType; r.body != "" {
		if contentType == "" {
			contentType = "application/json"
		}
		q.Header.Set("Content-Type", contentType)
	}
	answer, err := s.client.Do(q)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return response{answer.StatusCode, content, answer.Header.Values("Warning")}, err
}

// objects returns the objects of a life that exist now, by resource and name: all objects in its
// namespace, and the cluster-wide objects that have its name.
func (s *side) objects(life string) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, k := range kinds {
		indexer := s.present[k.name()]
		found := indexer.List
		if !k.cluster {
			found = func() []any {
				inside, _ := indexer.ByIndex(cache.NamespaceIndex, life) // the index exists
				return inside
			}
		}
		for _, o := range found() {
			u := o.(*unstructured.Unstructured)
			if !k.cluster || belongsTo(u.GetName(), life) {
				all[k.plural+"/"+u.GetName()] = u.Object
			}
		}
	}
	return all
}

// belongsTo reports whether an object of the cluster with the given name belongs to a life. The
// name of a life never begins with the name of another life and a hyphen.
func belongsTo(name, life string) bool {
	return name == life || strings.HasPrefix(name, life+"-") || strings.Contains(name, "."+life+".")
}
