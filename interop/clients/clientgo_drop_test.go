package clients

import (
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// client-go has no option to drop managedFields yet. The test therefore adds the Accept header of
// KEP-5958 in front of client-go's own.
func TestClientGoDropsManagedFields(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	dropping := s.Config(testapi.HTTP2)
	dropping.AcceptContentTypes = "application/json;drop=metadata.managedFields," + runtime.ContentTypeJSON
	whole := testkit.Must(kubernetes.NewForConfig(s.Config(testapi.HTTP2)))(t).CoreV1().ConfigMaps("n")
	apply := func(manager string) *corev1.ConfigMap {
		config := applycorev1.ConfigMap("a", "n").WithData(map[string]string{"x": "1"})
		return testkit.Must(whole.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: manager}))(t)
	}
	apply("one")
	client := testkit.Must(kubernetes.NewForConfig(dropping))(t)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := make(chan *corev1.ConfigMap, 10)
	testkit.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen <- o.(*corev1.ConfigMap) },
		UpdateFunc: func(_, o any) { seen <- o.(*corev1.ConfigMap) },
	}))(t)
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	next := func() *corev1.ConfigMap {
		t.Helper()
		select {
		case c := <-seen:
			if len(c.ManagedFields) > 0 {
				t.Errorf("got managedFields %v, want none", c.ManagedFields)
			}
			return c
		case <-time.After(30 * time.Second):
			t.Fatal("no event for 30 s")
			return nil
		}
	}
	next()
	// A write that changes only the managedFields sends its event, too.
	if both := apply("two"); len(both.ManagedFields) != 2 || next().ResourceVersion != both.ResourceVersion {
		t.Errorf("got another event than that of %v", both)
	}
	// An update without managedFields keeps the managedFields at the server.
	cached := testkit.Must(factory.Core().V1().ConfigMaps().Lister().ConfigMaps("n").Get("a"))(t).DeepCopy()
	cached.Data["y"] = "2"
	updated := testkit.Must(client.CoreV1().ConfigMaps("n").Update(t.Context(), cached, metav1.UpdateOptions{}))(t)
	if len(updated.ManagedFields) > 0 || next().ResourceVersion != updated.ResourceVersion {
		t.Errorf("got %v, want the update without managedFields, and its event", updated)
	}
	if stored := testkit.Must(whole.Get(t.Context(), "a", metav1.GetOptions{}))(t); len(stored.ManagedFields) < 2 {
		t.Errorf("the server has the managedFields %v, want those of both managers", stored.ManagedFields)
	}
}
