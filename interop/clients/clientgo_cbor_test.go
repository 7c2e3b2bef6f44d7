package clients

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
)

// preferCBOR makes client-go prefer CBOR until the test ends (KEP-4222), as the environment
// variables KUBE_FEATURE_ClientsAllowCBOR and KUBE_FEATURE_ClientsPreferCBOR do. The test must not
// be parallel, because feature gates apply to the whole process.
func preferCBOR(t *testing.T) {
	t.Helper()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsPreferCBOR, true)
}

// A cborRecorder counts requests and responses by their media type.
type cborRecorder struct {
	mu             sync.Mutex
	sent, received map[string]int // guarded by mu
}

func (m *cborRecorder) record(c *rest.Config) *rest.Config {
	m.sent, m.received = map[string]int{}, map[string]int{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			m.mu.Lock()
			defer m.mu.Unlock()
			if r.Body != nil {
				m.sent[r.Header.Get("Content-Type")]++
			}
			if err == nil {
				m.received[response.Header.Get("Content-Type")]++
			}
			return response, err
		})
	})
	return c
}

// want fails the test unless the recorded media types and their counts are the given ones.
func (m *cborRecorder) want(t *testing.T, sent, received map[string]int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if diff := cmp.Diff(sent, m.sent); diff != "" {
		t.Errorf("the requests have other media types (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(received, m.received); diff != "" {
		t.Errorf("the responses have other media types (-want +got):\n%s", diff)
	}
}

const (
	cborType      = runtime.ContentTypeCBOR
	cborApplyType = string(types.ApplyCBORPatchType)
	cborWatchType = runtime.ContentTypeCBORSequence
)

func TestDynamicClientUsesCBOR(t *testing.T) {
	preferCBOR(t)
	s := testapi.Start(t, "widgets.v1.demo.example.com=Widget")
	var media cborRecorder
	widgets := testkit.Must(dynamic.NewForConfig(media.record(s.Config(testapi.HTTP1))))(t).
		Resource(schema.GroupVersionResource{
			Group: "demo.example.com", Version: "v1",
			Resource: "widgets",
		}).Namespace("n")
	ctx := t.Context()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "a", "namespace": "n"},
		"spec": map[string]any{
			"count": int64(1<<53 + 1), "ratio": 0.1, "text": "é\n",
			"list": []any{true, nil, "x"},
		},
	}}
	w := testkit.Must(widgets.Watch(ctx, metav1.ListOptions{}))(t)
	defer w.Stop()
	created := testkit.Must(widgets.Create(ctx, widget, metav1.CreateOptions{}))(t)
	if diff := cmp.Diff(widget.Object["spec"], created.Object["spec"]); diff != "" {
		t.Errorf("the created object differs (-sent +got):\n%s", diff)
	}
	unstructured.SetNestedField(created.Object, int64(2), "spec", "count")
	updated := testkit.Must(widgets.Update(ctx, created, metav1.UpdateOptions{}))(t)
	widget.Object["spec"] = map[string]any{"applied": "y"}
	applied := testkit.Must(widgets.Apply(ctx, "a", widget, metav1.ApplyOptions{FieldManager: "m"}))(t)
	if spec := applied.Object["spec"].(map[string]any); spec["applied"] != "y" || spec["count"] != int64(2) {
		t.Errorf("got %v, want the applied field and the others", spec)
	}
	if got := testkit.Must(widgets.Get(ctx, "a", metav1.GetOptions{}))(t); !cmp.Equal(got, applied) {
		t.Errorf("got %v, want %v", got, applied)
	}
	if list := testkit.Must(widgets.List(ctx, metav1.ListOptions{}))(t); len(list.Items) != 1 ||
		!cmp.Equal(list.Items[0].Object, applied.Object) {
		t.Errorf("got %v, want a list of %v", list, applied)
	}
	for i, want := range []*unstructured.Unstructured{nil, updated, applied} {
		if e := <-w.ResultChan(); want != nil &&
			(e.Type != watch.Modified || !cmp.Equal(e.Object, runtime.Object(want))) {
			t.Errorf("event %d: got %v, want MODIFIED of %v", i, e, want)
		}
	}
	if err := widgets.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions("another")); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := widgets.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want 404", err)
	}
	media.want(t, map[string]int{cborType: 4, cborApplyType: 1}, map[string]int{cborType: 8, cborWatchType: 1})
}

// The generated clients of Kubernetes' own kinds use CBOR only if their configuration names it.
func TestTypedClientUsesCBOR(t *testing.T) {
	preferCBOR(t)
	s := testapi.Start(t, "secrets.v1=Secret")
	var media cborRecorder
	c := media.record(s.Config(testapi.HTTP1))
	c.ContentType, c.AcceptContentTypes = cborType, cborType
	core := newClientset(t, c).CoreV1()
	ctx := t.Context()
	w := testkit.Must(core.Secrets("n").Watch(ctx, metav1.ListOptions{}))(t)
	defer w.Stop()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"key": {0, 255}}}
	created := testkit.Must(core.Secrets("n").Create(ctx, secret, metav1.CreateOptions{}))(t)
	for name, got := range map[string]runtime.Object{
		"create": created, "get": testkit.Must(core.Secrets("n").Get(ctx, "a", metav1.GetOptions{}))(t),
		"watch": (<-w.ResultChan()).Object,
		"list":  &testkit.Must(core.Secrets("n").List(ctx, metav1.ListOptions{}))(t).Items[0],
	} {
		got := got.(*corev1.Secret)
		if string(got.Data["key"]) != "\x00\xff" || got.CreationTimestamp.IsZero() || got.UID != created.UID {
			t.Errorf("%s: got %+v, want the bytes of the key", name, got)
		}
	}
	config := applycorev1.ConfigMap("a", "n").WithBinaryData(map[string][]byte{"key": {1, 2}})
	applied := testkit.Must(core.ConfigMaps("n").Apply(ctx, config, metav1.ApplyOptions{FieldManager: "m"}))(t)
	if string(applied.BinaryData["key"]) != "\x01\x02" || len(applied.ManagedFields) != 1 ||
		applied.ManagedFields[0].FieldsV1.GetRawReader() == nil {
		t.Errorf("got %+v, want the applied bytes", applied)
	}
	if err := core.Secrets("n").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	media.want(t, map[string]int{cborType: 2, cborApplyType: 1}, map[string]int{cborType: 5, cborWatchType: 1})
}

func TestInformersUseCBOR(t *testing.T) {
	preferCBOR(t)
	s := testapi.Start(t)
	var media cborRecorder
	client := testkit.Must(dynamic.NewForConfig(media.record(s.Config(testapi.HTTP2))))(t)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	lister := factory.ForResource(maps).Lister()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, name := range []string{"a", "b"} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name},
		}}
		testkit.Must(client.Resource(maps).Namespace("n").Create(ctx, o, metav1.CreateOptions{}))(t)
		factory.Start(ctx.Done())
		eventually(t, "the informer has "+name, func(context.Context) (bool, error) {
			_, err := lister.ByNamespace("n").Get(name)
			return err == nil, nil
		})
	}
	media.mu.Lock()
	defer media.mu.Unlock()
	if media.received[cborWatchType] == 0 || media.received[runtime.ContentTypeJSON] > 0 {
		t.Errorf("received %v, want only CBOR", media.received)
	}
}

// The server describes resources in JSON, even to a client that prefers CBOR.
func TestDiscoveryWorksIfClientPrefersCBOR(t *testing.T) {
	preferCBOR(t)
	d := testkit.Must(discovery.NewDiscoveryClientForConfig(testapi.Start(t).Config(testapi.HTTP1)))(t)
	testkit.Must(d.ServerVersion())(t)
	testkit.Must(d.ServerResourcesForGroupVersion("apps/v1"))(t)
	testkit.Must(d.OpenAPISchema())(t)
	if lists := testkit.Must(d.ServerPreferredResources())(t); len(lists) < 2 {
		t.Errorf("got %v, want the core group and others", lists)
	}
}
