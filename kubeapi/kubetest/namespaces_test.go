package kubetest_test

import (
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (c *cluster) createNamespace(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	return testkit.Must(c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: named(name)},
		metav1.CreateOptions{}))(t)
}

func TestDeletedNamespacesAreTerminatingAtOnce(t *testing.T) {
	for name, kept := range map[string]bool{"emptied": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.createNamespace(t, "n")
				o := metav1.ListOptions{FieldSelector: "metadata.name=n"}
				w := testkit.Must(c.CoreV1().Namespaces().Watch(t.Context(), o))(t)
				defer w.Stop()
				<-w.ResultChan() // ADDED
				body := testkit.Must(request(t.Context(), c, "DELETE", "/api/v1/namespaces/n"))(t)
				if status, _ := body["status"].(map[string]any); body["kind"] != "Namespace" ||
					status["phase"] != "Terminating" {
					t.Errorf("got the response %v, want the namespace in phase Terminating", body)
				}
				first := (<-w.ResultChan()).Object.(*corev1.Namespace)
				if first.Status.Phase != corev1.NamespaceTerminating || first.DeletionTimestamp == nil {
					t.Errorf("got %+v, want the phase Terminating in the first event", first)
				}
			}, kubetest.Options{NoNamespaceDeletion: kept})
		})
	}
}

func TestConditionsSayWhatKeepsANamespace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createNamespace(t, "n")
		m := named("a")
		m.Finalizers = []string{"example.com/hold"}
		testkit.Must(c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: m},
			metav1.CreateOptions{}))(t)
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ns := testkit.Must(c.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{}))(t)
		got := map[corev1.NamespaceConditionType]string{}
		for _, condition := range ns.Status.Conditions {
			got[condition.Type] = string(condition.Status) + " " + condition.Reason + ": " + condition.Message
		}
		for name, want := range map[corev1.NamespaceConditionType]string{
			corev1.NamespaceDeletionContentFailure: "False ContentDeleted: All content successfully deleted, may be waiting on finalization",
			corev1.NamespaceContentRemaining:       "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances",
			corev1.NamespaceFinalizersRemaining: "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: " +
				"example.com/hold in 1 resource instances",
		} {
			if got[name] != want {
				t.Errorf("%s: got %q, want %q", name, got[name], want)
			}
		}
		if len(got) != 5 {
			t.Errorf("got the conditions %v, want five", got)
		}
	})
}

// TestNamespacesKeepObjectsUntilPodsAreGone deletes a namespace with a pod that a finalizer holds.
func TestNamespacesKeepObjectsUntilPodsAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createNamespace(t, "n")
		m := named("p")
		m.Finalizers = []string{"example.com/hold"}
		pod := &corev1.Pod{ObjectMeta: m, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		testkit.Must(c.CoreV1().Pods("n").Create(t.Context(), pod, metav1.CreateOptions{}))(t)
		testkit.Must(c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("a")},
			metav1.CreateOptions{}))(t)
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if o := testkit.Must(c.CoreV1().ConfigMaps("n").Get(t.Context(), "a",
			metav1.GetOptions{}))(t); o.DeletionTimestamp != nil {
			t.Errorf("got %+v, want a config map that is not being deleted", o)
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		testkit.Must(c.CoreV1().Pods("n").Patch(t.Context(), "p", types.MergePatchType, patch,
			metav1.PatchOptions{}))(t)
		synctest.Wait()
		if ns, err := c.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %+v, %v, want the namespace to be gone", ns, err)
		}
	})
}

// TestNamespacesAreEmptiedInTheBackground shows that the default policy of jobs and finalizers of
// policies do not keep a namespace.
func TestNamespacesAreEmptiedInTheBackground(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createNamespace(t, "n")
		pod := corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "a", Image: "a"}},
			RestartPolicy: corev1.RestartPolicyNever,
		}
		m := named("j")
		m.Finalizers = []string{metav1.FinalizerOrphanDependents}
		job := &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
		testkit.Must(c.BatchV1().Jobs("n").Create(t.Context(), job, metav1.CreateOptions{}))(t)
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if ns, err := c.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %+v, %v, want the namespace to be gone", ns, err)
		}
	}, kubetest.Options{NoGarbageCollection: true})
}

func TestProtectedNamespacesCannotBeDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, name := range []string{"default", "kube-system", "kube-public"} {
			err := c.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
			if want := `namespaces "` + name +
				`" is forbidden: this namespace may not be deleted`; !apierrors.IsForbidden(err) ||
				err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestSpecFinalizersEndWithTheContent deletes a namespace that has a finalizer of its own.
func TestSpecFinalizersEndWithTheContent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := named("n")
		m.Finalizers = []string{"example.com/hold"}
		namespaces := c.CoreV1().Namespaces()
		testkit.Must(namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: m}, metav1.CreateOptions{}))(t)
		ns := testkit.Must(namespaces.Update(t.Context(), &corev1.Namespace{ObjectMeta: m}, metav1.UpdateOptions{}))(t)
		if len(ns.Spec.Finalizers) != 1 {
			t.Errorf("got %+v after an update without a spec, want its finalizer", ns)
		}
		if err := namespaces.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ns = testkit.Must(namespaces.Get(t.Context(), "n", metav1.GetOptions{}))(t)
		if len(ns.Spec.Finalizers) != 0 || len(ns.Finalizers) != 1 {
			t.Errorf("got %+v, want a namespace that waits only for the finalizer in its metadata", ns)
		}
		ns = testkit.Must(namespaces.Finalize(t.Context(), ns, metav1.UpdateOptions{}))(t)
		ns.Finalizers = nil
		testkit.Must(namespaces.Update(t.Context(), ns, metav1.UpdateOptions{}))(t)
		if _, err := namespaces.Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want the namespace to be gone", err)
		}
	})
}
