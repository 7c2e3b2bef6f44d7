package kubetest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A cluster is an Env with clients.
type cluster struct {
	*kubetest.Env
	kubernetes.Interface
	dynamic dynamic.Interface
}

func start(t testing.TB, o kubetest.Options) *cluster {
	t.Helper()
	env := kubetest.New(t, o)
	return &cluster{
		env, testkit.Must(kubernetes.NewForConfig(env.Config()))(t),
		testkit.Must(dynamic.NewForConfig(env.Config()))(t),
	}
}

// inBubble calls run with a cluster in a bubble of testing/synctest, where synctest.Wait waits
// until the cluster has nothing to do. The options are at most one value.
func inBubble(t *testing.T, run func(t *testing.T, c *cluster), options ...kubetest.Options) {
	t.Helper()
	t.Parallel()
	var o kubetest.Options
	if len(options) > 0 {
		o = options[0]
	}
	synctest.Test(t, func(t *testing.T) { run(t, start(t, o)) })
}

func named(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: owners}
}

// createConfigMap creates a config map in the namespace default.
func (c *cluster) createConfigMap(t *testing.T, m metav1.ObjectMeta) *corev1.ConfigMap {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: m}
	return testkit.Must(c.CoreV1().ConfigMaps("default").Create(t.Context(), o, metav1.CreateOptions{}))(t)
}

// configMaps returns the names of the config maps in the namespace default.
func (c *cluster) configMaps(t *testing.T) (names []string) {
	t.Helper()
	for _, o := range testkit.Must(c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}))(t).Items {
		names = append(names, o.Name)
	}
	return names
}

func deployment(replicas *int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
			},
		},
		Status: appsv1.DeploymentStatus{Replicas: 7},
	}
}

func TestStatusIsWrittenSeparately(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		api := c.AppsV1().Deployments("default")
		d := testkit.Must(api.Create(t.Context(), deployment(nil), metav1.CreateOptions{}))(t)
		if d.Status.Replicas != 0 || d.Spec.Replicas == nil || *d.Spec.Replicas != 1 {
			t.Errorf("got %+v, want one replica by default, and no status", d)
		}
		d.Status.Replicas, *d.Spec.Replicas = 3, 5
		d = testkit.Must(api.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}))(t)
		if d.Status.Replicas != 3 || *d.Spec.Replicas != 1 {
			t.Errorf("got %+v after an update of the status", d)
		}
		d.Status.Replicas, *d.Spec.Replicas = 4, 5
		d = testkit.Must(api.Update(t.Context(), d, metav1.UpdateOptions{}))(t)
		if d.Status.Replicas != 3 || *d.Spec.Replicas != 5 || d.Generation != 2 {
			t.Errorf("got %+v after an update", d)
		}
		scale := testkit.Must(api.GetScale(t.Context(), "web", metav1.GetOptions{}))(t)
		if scale.Spec.Replicas != 5 || scale.Status.Replicas != 3 {
			t.Errorf("got the scale %+v", scale)
		}
	})
}

func TestServerSideApplyMergesLists(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pods := c.CoreV1().Pods("default")
		for _, name := range []string{"a", "b"} {
			container := applycorev1.Container().WithName(name).WithImage(name)
			pod := applycorev1.Pod("web", "default").WithSpec(applycorev1.PodSpec().WithContainers(container))
			testkit.Must(pods.Apply(t.Context(), pod, metav1.ApplyOptions{FieldManager: name}))(t)
		}
		pod := testkit.Must(pods.Get(t.Context(), "web", metav1.GetOptions{}))(t)
		if len(pod.Spec.Containers) != 2 || pod.Status.Phase != corev1.PodPending ||
			pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
			t.Errorf("got %+v, want the containers of both managers", pod)
		}
	})
}

func TestInvalidObjectsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		_, err := c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: named("a")},
			metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.containers: Required value") {
			t.Errorf("a pod without containers: got %v", err)
		}
		api := c.AppsV1().Deployments("default")
		d := testkit.Must(api.Create(t.Context(), deployment(nil), metav1.CreateOptions{}))(t)
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		if _, err := api.Update(t.Context(), d, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("a change of an immutable field: got %v", err)
		}
		_, err = c.CoreV1().ConfigMaps("absent").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("a")},
			metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) || err.Error() != `namespaces "absent" not found` {
			t.Errorf("an object in a namespace that does not exist: got %v", err)
		}
	})
}

func TestSecretsTakeTexts(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		secret := &corev1.Secret{
			ObjectMeta: named("s"), StringData: map[string]string{"a": "text"},
			Data: map[string][]byte{"b": []byte("x")},
		}
		secret = testkit.Must(c.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))(t)
		if string(secret.Data["a"]) != "text" || string(secret.Data["b"]) != "x" || secret.StringData != nil ||
			secret.Type != corev1.SecretTypeOpaque {
			t.Errorf("got %+v", secret)
		}
	})
}

func TestDiscoveryNamesEveryGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var got []string
		_, lists, err := c.Discovery().ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lists {
			got = append(got, l.GroupVersion)
		}
		for _, want := range []string{
			"v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1", "rbac.authorization.k8s.io/v1",
			"networking.k8s.io/v1",
			"policy/v1", "events.k8s.io/v1", "demo.example.com/v1", "apiextensions.k8s.io/v1",
		} {
			if !slices.Contains(got, want) {
				t.Errorf("got %q, want %s", got, want)
			}
		}
		paths := testkit.Must(c.Discovery().OpenAPIV3().Paths())(t)
		if paths["apis/demo.example.com/v1"] == nil || paths["apis/apps/v1"] == nil {
			t.Errorf("got the OpenAPI documents %v", paths)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestKubeconfigReachesTheSameObjects(t *testing.T) {
	t.Parallel()
	c := start(t, kubetest.Options{})
	c.createConfigMap(t, named("a"))
	file := c.KubeconfigFile()
	config := testkit.Must(clientcmd.BuildConfigFromFlags("", file))(t)
	clients := testkit.Must(kubernetes.NewForConfig(config))(t)
	if _, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if c.KubeconfigFile() != file {
		t.Error("the second call wrote another file")
	}
}

// BenchmarkNew measures the time from New to the first list of pods.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		func() {
			t := &scope{TB: b}
			defer t.end()
			c := testkit.Must(kubernetes.NewForConfig(kubetest.New(t, kubetest.Options{}).Config()))(b)
			testkit.Must(c.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{}))(b)
		}()
	}
}

// A scope is a testing.TB whose cleanups run before the benchmark ends.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}
