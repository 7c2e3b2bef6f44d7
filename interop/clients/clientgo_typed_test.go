package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A namedObject has the methods that all kinds share.
type namedObject interface {
	metav1.Object
	runtime.Object
}

// A resourceClient has the methods that the clientset provides for each resource.
type resourceClient[T namedObject, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func TestTypedClientsWriteAndRead(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		client := newClientset(t, testapi.Start(t).Config(p))
		t.Run("pods", func(t *testing.T) {
			testLifecycle(t, client.CoreV1().Pods("default"), pod("a", nil))
		})
		t.Run("configmaps", func(t *testing.T) {
			testLifecycle(t, client.CoreV1().ConfigMaps("default"), configMap("a", nil, map[string]string{"k": "v"}))
		})
		t.Run("services", func(t *testing.T) {
			testLifecycle(t, client.CoreV1().Services("default"), service("a"))
		})
		t.Run("deployments", func(t *testing.T) {
			testLifecycle(t, client.AppsV1().Deployments("default"), deployment("a"))
		})
		t.Run("namespaces", func(t *testing.T) {
			testLifecycle(t, client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		})
	})
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	d.Spec.Replicas = new(int32)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", nil).Spec}
	return d
}

// testLifecycle creates o and an object with a generated name, changes o, and deletes both.
func testLifecycle[T namedObject, L runtime.Object](t *testing.T, c resourceClient[T, L], o T) {
	ctx := t.Context()
	created := testkit.Must(c.Create(ctx, o,
		metav1.CreateOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict}))(t)
	if created.GetUID() == "" || created.GetResourceVersion() == "" || created.GetCreationTimestamp().Time.IsZero() {
		t.Errorf("got %v, want the fields that the server fills in", created)
	}
	got := testkit.Must(c.Get(ctx, o.GetName(), metav1.GetOptions{}))(t)
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("the object differs when read (-created +read):\n%s", diff)
	}

	got.SetLabels(map[string]string{"step": "update"})
	updated := testkit.Must(c.Update(ctx, got, metav1.UpdateOptions{}))(t)
	if updated.GetLabels()["step"] != "update" || updated.GetResourceVersion() == created.GetResourceVersion() {
		t.Errorf("got %v, want the label and a new version", updated)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType: `{"metadata":{"labels":{"step":%q}}}`,
		types.JSONPatchType: `[{"op":"test","path":"/metadata/uid","value":"` + string(created.GetUID()) +
			`"},{"op":"replace","path":"/metadata/labels/step","value":%q}]`,
	} {
		want := strings.ReplaceAll(strings.TrimPrefix(string(kind), "application/"), "+", "-")
		patched := testkit.Must(c.Patch(ctx, o.GetName(), kind, fmt.Appendf(nil, patch, want),
			metav1.PatchOptions{}))(t)
		if got := patched.GetLabels()["step"]; got != want {
			t.Errorf("%s: the label is %q, want %q", kind, got, want)
		}
	}

	o.SetName("")
	o.SetGenerateName("some-")
	named := testkit.Must(c.Create(ctx, o, metav1.CreateOptions{}))(t)
	if !strings.HasPrefix(named.GetName(), "some-") || len(named.GetName()) != len("some-")+5 {
		t.Errorf("got generated name %q, want some- and five characters", named.GetName())
	}
	if list := testkit.Must(c.List(ctx, metav1.ListOptions{}))(t); meta.LenList(list) != 2 {
		t.Errorf("got list %v, want two objects", list)
	}
	for _, name := range []string{created.GetName(), named.GetName()} {
		if err := c.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := c.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get after the deletion: got %v, want NotFound", err)
		}
	}
}

func TestStatusIsWrittenSeparately(t *testing.T) {
	client := newClientset(t, testapi.Start(t).Config(testapi.HTTP1))
	ctx := t.Context()
	deployments := client.AppsV1().Deployments("default")
	d := testkit.Must(deployments.Create(ctx, deployment("a"), metav1.CreateOptions{}))(t)
	d.Spec.Replicas, d.Status.Replicas = new(int32(3)), 2
	d = testkit.Must(deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}))(t)
	if *d.Spec.Replicas != 0 || d.Status.Replicas != 2 || d.Generation != 1 {
		t.Errorf("after UpdateStatus: got spec.replicas %d, status.replicas %d, generation %d; want 0, 2, 1",
			*d.Spec.Replicas, d.Status.Replicas, d.Generation)
	}
	d.Spec.Replicas = new(int32(3))
	if d = testkit.Must(deployments.Update(ctx, d, metav1.UpdateOptions{}))(t); d.Generation != 2 ||
		d.Status.Replicas != 2 {
		t.Errorf("after Update: got status.replicas %d, generation %d; want 2, 2", d.Status.Replicas, d.Generation)
	}

	pods := client.CoreV1().Pods("default")
	running := pod("a", nil)
	testkit.Must(pods.Create(ctx, running, metav1.CreateOptions{}))(t)
	running.Status.Phase = corev1.PodRunning
	if p := testkit.Must(pods.UpdateStatus(ctx, running,
		metav1.UpdateOptions{}))(t); p.Status.Phase != corev1.PodRunning {
		t.Errorf("got phase %q, want Running", p.Status.Phase)
	}
	patch := []byte(`{"status":{"phase":"Succeeded"},"spec":{"nodeName":"elsewhere"}}`)
	p := testkit.Must(pods.Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status"))(t)
	if p.Status.Phase != corev1.PodSucceeded || p.Spec.NodeName != "" {
		t.Errorf("after the patch: got phase %q and node %q, want Succeeded and no node", p.Status.Phase,
			p.Spec.NodeName)
	}
	if done := testkit.Must(pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"}))(t); len(
		done.Items) != 1 {
		t.Errorf("got %d pods by phase, want 1", len(done.Items))
	}
}

func TestCollectionsAreDeletedBySelector(t *testing.T) {
	client := newClientset(t, testapi.Start(t).Config(testapi.HTTP1))
	ctx := t.Context()
	for i := range 6 {
		labels := map[string]string{"odd": fmt.Sprint(i%2 == 1)}
		for _, namespace := range []string{"one", "two"} {
			testkit.Must(client.CoreV1().Pods(namespace).Create(ctx, pod(fmt.Sprint("p", i), labels),
				metav1.CreateOptions{}))(t)
		}
	}
	odd := metav1.ListOptions{LabelSelector: "odd=true"}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	for _, o := range []metav1.DeleteOptions{dry, {}} {
		if err := client.CoreV1().Pods("one").DeleteCollection(ctx, o, odd); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int{true: 12, false: 9}[o.DryRun != nil]
		if left := testkit.Must(client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}))(t); len(left.Items) != want {
			t.Errorf("got %d remaining pods with dryRun %q, want %d", len(left.Items), o.DryRun, want)
		}
	}
	for _, p := range testkit.Must(client.CoreV1().Pods("one").List(ctx, metav1.ListOptions{}))(t).Items {
		if p.Labels["odd"] != "false" {
			t.Errorf("pod %s was not deleted", p.Name)
		}
	}
}

func TestFinalizersDelayDeletion(t *testing.T) {
	client := newClientset(t, testapi.Start(t).Config(testapi.HTTP1))
	ctx, maps := t.Context(), client.CoreV1().ConfigMaps("default")
	held := configMap("a", nil, nil)
	held.Finalizers = []string{"example.com/hold"}
	testkit.Must(maps.Create(ctx, held, metav1.CreateOptions{}))(t)
	foreground := metav1.DeleteOptions{
		PropagationPolicy:  new(metav1.DeletePropagationForeground),
		GracePeriodSeconds: new(int64(0)),
	}
	if err := maps.Delete(ctx, "a", foreground); err != nil {
		t.Fatal(err)
	}
	held = testkit.Must(maps.Get(ctx, "a", metav1.GetOptions{}))(t)
	if held.DeletionTimestamp == nil {
		t.Error("the deleted object has no deletionTimestamp")
	}
	held.Finalizers = nil
	testkit.Must(maps.Update(ctx, held, metav1.UpdateOptions{}))(t)
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after the finalizer was removed: got %v, want NotFound", err)
	}
}

// A dry run returns the result of a write, but writes nothing.
func TestDryRunsWriteNothing(t *testing.T) {
	client := newClientset(t, testapi.Start(t).Config(testapi.HTTP1))
	ctx, maps := t.Context(), client.CoreV1().ConfigMaps("default")
	dry := []string{metav1.DryRunAll}
	if o := testkit.Must(maps.Create(ctx, configMap("a", nil, nil),
		metav1.CreateOptions{DryRun: dry}))(t); o.UID == "" {
		t.Error("the dry-run create returned no uid")
	}
	wantNoConfigMaps(t, client)
	kept := testkit.Must(maps.Create(ctx, configMap("a", nil, nil), metav1.CreateOptions{}))(t)
	changed := kept.DeepCopy()
	changed.Data = map[string]string{"k": "v"}
	testkit.Must(maps.Update(ctx, changed, metav1.UpdateOptions{DryRun: dry}))(t)
	testkit.Must(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"v"}}`),
		metav1.PatchOptions{DryRun: dry}))(t)
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(kept, testkit.Must(maps.Get(ctx, "a", metav1.GetOptions{}))(t)); diff != "" {
		t.Errorf("dry runs changed the object:\n%s", diff)
	}
}

func wantNoConfigMaps(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	if n := len(testkit.Must(client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))(t).Items); n != 0 {
		t.Errorf("got %d configmaps, want none", n)
	}
}
