package clients

import (
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wantConflict requires that err is a conflict about the given field with another field manager.
func wantConflict(t *testing.T, err error, field string) {
	t.Helper()
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldManagerConflict)
	if !apierrors.IsConflict(err) || !ok || cause.Field != field {
		t.Errorf("got %v, want a conflict about %s", err, field)
	}
}

func TestClientGoAppliesTypedConfigurations(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	maps := testkit.Must(kubernetes.NewForConfig(s.Config(testapi.HTTP2)))(t).CoreV1().ConfigMaps("n")
	config := func(key, value string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("a", "n").WithData(map[string]string{key: value})
	}
	testkit.Must(maps.Apply(t.Context(), config("x", "1"), metav1.ApplyOptions{FieldManager: "one"}))(t)
	both := testkit.Must(maps.Apply(t.Context(), config("y", "1"), metav1.ApplyOptions{FieldManager: "two"}))(t)
	if both.Data["x"] != "1" || both.Data["y"] != "1" || len(both.ManagedFields) != 2 {
		t.Errorf("got %+v, want the data of both managers", both)
	}
	_, err := maps.Apply(t.Context(), config("x", "2"), metav1.ApplyOptions{FieldManager: "two"})
	wantConflict(t, err, ".data.x")
	extracted := testkit.Must(applycorev1.ExtractConfigMap(both, "one"))(t)
	if len(extracted.Data) != 1 || extracted.Data["x"] != "1" {
		t.Errorf("extracted %v, want the field of the first manager", extracted.Data)
	}
	left := testkit.Must(maps.Apply(t.Context(), applycorev1.ConfigMap("a", "n"),
		metav1.ApplyOptions{FieldManager: "one"}))(t)
	if len(left.Data) != 1 || left.Data["y"] != "1" {
		t.Errorf("got %v, want only the field of the second manager", left.Data)
	}
}

func TestControllerRuntimeApplies(t *testing.T) {
	t.Parallel()
	s := testapi.Start(t)
	c := newControllerClient(t, s)
	config := func(replicas int32) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("a", "n").WithData(map[string]string{"replicas": string(rune('0' + replicas))})
	}
	if err := c.Apply(t.Context(), config(1), client.FieldOwner("one")); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, c.Apply(t.Context(), config(2), client.FieldOwner("two")), ".data.replicas")
	forced := config(3)
	if err := c.Apply(t.Context(), forced, client.FieldOwner("two"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	// Apply stores the response of the server in the configuration that was applied.
	if forced.Data["replicas"] != "3" || forced.ResourceVersion == nil {
		t.Errorf("got %+v, want the applied object", forced)
	}
}
