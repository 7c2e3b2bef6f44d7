package kubetest_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

func TestPodsAreBoundAndEvicted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pods := c.CoreV1().Pods("default")
		pod := &corev1.Pod{ObjectMeta: named("a"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		pod.Annotations = map[string]string{"example.com/kept": "y"}
		testkit.Must(pods.Create(t.Context(), pod, metav1.CreateOptions{}))(t)
		binding := &corev1.Binding{ObjectMeta: named("a"), Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
		binding.Annotations = map[string]string{"example.com/by": "x"}
		if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got := testkit.Must(pods.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		if c := got.Status.Conditions; got.Spec.NodeName != "n" || got.Annotations["example.com/by"] != "x" ||
			got.Annotations["example.com/kept"] != "y" || len(c) != 1 || c[0].Type != corev1.PodScheduled {
			t.Errorf("got the node %q, the annotations %v and the conditions %v", got.Spec.NodeName, got.Annotations, c)
		}
		binding.Target.Name = "other"
		err := pods.Bind(t.Context(), binding, metav1.CreateOptions{})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `pod a is already assigned to node "n"`) {
			t.Errorf("a second binding: got %v", err)
		}
		if err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: named("a")}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v after the eviction", err)
		}
		if err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: named("a")}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v from a second eviction", err)
		}
	})
}

func TestServiceAccountsGetTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		accounts := c.CoreV1().ServiceAccounts("default")
		testkit.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named("a")},
			metav1.CreateOptions{}))(t)
		r := testkit.Must(accounts.CreateToken(t.Context(), "a", &authenticationv1.TokenRequest{},
			metav1.CreateOptions{}))(t)
		if r.Status.Token == "" || r.Status.ExpirationTimestamp.IsZero() {
			t.Errorf("got %+v", r)
		}
	})
}

func TestFinalizeReleasesNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createNamespace(t, "n")
		namespaces := c.CoreV1().Namespaces()
		if err := namespaces.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		ns := testkit.Must(namespaces.Get(t.Context(), "n", metav1.GetOptions{}))(t)
		ns.Spec.Finalizers = nil
		testkit.Must(namespaces.Finalize(t.Context(), ns, metav1.UpdateOptions{}))(t)
		if _, err := namespaces.Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want the namespace to be gone", err)
		}
	}, kubetest.Options{NoNamespaceDeletion: true})
}

func TestNoEvictionInADeletedNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
		if err := c.PolicyV1().Evictions("n").Evict(t.Context(), eviction); !apierrors.IsNotFound(err) ||
			!strings.Contains(err.Error(), `namespaces "n"`) {
			t.Errorf("got %v, want no namespace to be found", err)
		}
		c.createNamespace(t, "n")
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.PolicyV1().Evictions("n").Evict(t.Context(), eviction); !apierrors.HasStatusCause(err,
			corev1.NamespaceTerminatingCause) {
			t.Errorf("got %v, want that the namespace is being terminated", err)
		}
	}, kubetest.Options{NoNamespaceDeletion: true})
}

func TestEvictionsFollowTheirOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pods := c.CoreV1().Pods("default")
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}
		pod := testkit.Must(pods.Create(t.Context(), &corev1.Pod{ObjectMeta: named("p"), Spec: spec},
			metav1.CreateOptions{}))(t)
		for _, o := range []metav1.DeleteOptions{
			{DryRun: []string{metav1.DryRunAll}},
			*metav1.NewPreconditionDeleteOptions("other"),
			*metav1.NewPreconditionDeleteOptions(string(pod.UID)),
		} {
			err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: named("p"), DeleteOptions: &o})
			if other := o.Preconditions != nil && *o.Preconditions.UID == "other"; apierrors.IsConflict(err) != other ||
				err != nil && !other {
				t.Errorf("%v: got %v", o, err)
			}
			_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
			if evicted := o.Preconditions != nil &&
				*o.Preconditions.UID == pod.UID; apierrors.IsNotFound(err) != evicted {
				t.Errorf("%v: got %v, want that the pod is evicted: %t", o, err, evicted)
			}
		}
	})
}
