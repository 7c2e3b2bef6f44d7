package kubetest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// ownedBy returns a reference to a config map.
func ownedBy(o *corev1.ConfigMap) metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID,
		BlockOwnerDeletion: &block,
	}
}

func (c *cluster) deleteConfigMap(t *testing.T, name string, p metav1.DeletionPropagation) {
	t.Helper()
	if err := c.CoreV1().ConfigMaps("default").Delete(t.Context(), name, policy(p)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestDependentsOfDeletedOwnersAreDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.createConfigMap(t, named("a")), c.createConfigMap(t, named("b"))
		child := c.createConfigMap(t, named("child", ownedBy(a)))
		c.createConfigMap(t, named("grandchild", ownedBy(child)))
		c.createConfigMap(t, named("shared", ownedBy(a), ownedBy(b)))
		foreign := ownedBy(a)
		foreign.Kind = "Unknown"
		c.createConfigMap(t, named("unknown", foreign))
		c.createConfigMap(t,
			named("orphan", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "other"}))
		c.deleteConfigMap(t, "a", "")
		if got, want := c.configMaps(t), []string{"b", "shared", "unknown"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		shared := testkit.Must(c.CoreV1().ConfigMaps("default").Get(t.Context(), "shared", metav1.GetOptions{}))(t)
		if len(shared.OwnerReferences) != 1 || shared.OwnerReferences[0].UID != b.UID {
			t.Errorf("got the owners %v, want the remaining one", shared.OwnerReferences)
		}
	})
}

func TestOrphanPolicyKeepsDependents(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		c.createConfigMap(t, named("child", ownedBy(a)))
		c.deleteConfigMap(t, "a", metav1.DeletePropagationOrphan)
		if got, want := c.configMaps(t), []string{"child"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		child := testkit.Must(c.CoreV1().ConfigMaps("default").Get(t.Context(), "child", metav1.GetOptions{}))(t)
		if len(child.OwnerReferences) != 0 {
			t.Errorf("got the owners %v, want none", child.OwnerReferences)
		}
	})
}

// TestUnservedVersionsOfOwnersAreUnknown creates dependents of owners that do not exist. As in a
// cluster, only a reference with a version that is served proves that there is no owner.
func TestNoManagerOwnsRemovedReferences(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		child := applycorev1.ConfigMap("child", "default").WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion("v1").WithKind("ConfigMap").WithName("a").WithUID(a.UID))
		byM := metav1.ApplyOptions{FieldManager: "m"}
		testkit.Must(c.CoreV1().ConfigMaps("default").Apply(t.Context(), child, byM))(t)
		c.deleteConfigMap(t, "a", metav1.DeletePropagationOrphan)
		got := testkit.Must(c.CoreV1().ConfigMaps("default").Get(t.Context(), "child", metav1.GetOptions{}))(t)
		for _, entry := range got.ManagedFields {
			if strings.Contains(entry.FieldsV1.String(), string(a.UID)) {
				t.Errorf("%s owns the removed reference: %s", entry.Manager, entry.FieldsV1)
			}
		}
	})
}

func TestUnservedVersionsOfOwnersAreUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for version, kind := range map[string]string{
			"apps/v1": "ReplicaSet", "apps/v1beta9": "ReplicaSet", "autoscaling/v1": "HorizontalPodAutoscaler",
			"demo.example.com/v1": "Widget", "demo.example.com/v2": "Widget", "v2": "Secret",
		} {
			o := metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "a", UID: "u"}
			c.createConfigMap(t, named(strings.ReplaceAll(version, "/", "."), o))
		}
		synctest.Wait()
		if got, want := c.configMaps(t),
			[]string{"apps.v1beta9", "demo.example.com.v2", "v2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestForegroundPolicyWaitsForDependents(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		m := named("child", ownedBy(a))
		m.Finalizers = []string{"example.com/hold"}
		c.createConfigMap(t, m)
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		if got, want := c.configMaps(t), []string{"a", "child"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q while a finalizer holds the dependent", got, want)
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		testkit.Must(c.CoreV1().ConfigMaps("default").Patch(t.Context(), "child", types.MergePatchType, patch,
			metav1.PatchOptions{}))(t)
		synctest.Wait()
		if got := c.configMaps(t); got != nil {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestLateDependentsOutliveTheWait creates dependents of an owner that already waits for an older
// dependent. As in a cluster, they remain until the older dependent is gone.
func TestLateDependentsOutliveTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		m := named("held", ownedBy(a))
		m.Finalizers = []string{"example.com/hold"}
		c.createConfigMap(t, m)
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		c.createConfigMap(t, named("blocks", ownedBy(a)))
		late := ownedBy(a)
		late.BlockOwnerDeletion = nil
		c.createConfigMap(t, named("late", late))
		synctest.Wait()
		if got, want := c.configMaps(t), []string{"a", "blocks", "held", "late"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q while a finalizer holds the first dependent", got, want)
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		testkit.Must(c.CoreV1().ConfigMaps("default").Patch(t.Context(), "held", types.MergePatchType, patch,
			metav1.PatchOptions{}))(t)
		synctest.Wait()
		if got := c.configMaps(t); got != nil {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestForegroundPolicyDeletesDependentsThatDoNotBlock deletes an owner that has a finalizer.
func TestForegroundPolicyDeletesDependentsThatDoNotBlock(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := named("a")
		m.Finalizers = []string{"example.com/hold"}
		owner := ownedBy(c.createConfigMap(t, m))
		owner.BlockOwnerDeletion = nil
		for _, name := range []string{"b", "c", "d", "e"} {
			c.createConfigMap(t, named(name, owner))
		}
		synctest.Wait()
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		if got, want := c.configMaps(t), []string{"a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestDeletedNamespacesAreEmptied(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		namespaces := c.CoreV1().Namespaces()
		ns := testkit.Must(namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: named("n")},
			metav1.CreateOptions{}))(t)
		if ns.Status.Phase != corev1.NamespaceActive || ns.Labels["kubernetes.io/metadata.name"] != "n" {
			t.Errorf("got %+v", ns)
		}
		m := named("held")
		m.Finalizers = []string{"example.com/hold"}
		for _, m := range []metav1.ObjectMeta{named("free"), m} {
			testkit.Must(c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: m},
				metav1.CreateOptions{}))(t)
		}
		if err := namespaces.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ns = testkit.Must(namespaces.Get(t.Context(), "n", metav1.GetOptions{}))(t)
		if ns.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("got %+v, want the phase Terminating", ns)
		}
		_, err := c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("new")},
			metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("a create in a namespace that is being deleted: got %v", err)
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		testkit.Must(c.CoreV1().ConfigMaps("n").Patch(t.Context(), "held", types.MergePatchType, patch,
			metav1.PatchOptions{}))(t)
		synctest.Wait()
		if _, err := namespaces.Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want the namespace to be gone", err)
		}
	})
}

func TestFeaturesCanBeTurnedOff(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := named("a")
		m.Finalizers = []string{"example.com/hold"}
		a := c.createConfigMap(t, m)
		c.createConfigMap(t, named("child", ownedBy(a)))
		c.deleteConfigMap(t, "a", "")
		if got, want := c.configMaps(t), []string{"child"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.createNamespace(t, "n")
		testkit.Must(c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("a")},
			metav1.CreateOptions{}))(t)
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ns := testkit.Must(c.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{}))(t)
		_, err := c.CoreV1().ConfigMaps("n").Get(t.Context(), "a", metav1.GetOptions{})
		if ns.Status.Phase != corev1.NamespaceTerminating || err != nil {
			t.Errorf("got %+v, %v, want a namespace that is never emptied", ns, err)
		}
	}, kubetest.Options{NoGarbageCollection: true, NoNamespaceDeletion: true, NoFinalizers: true})
}
