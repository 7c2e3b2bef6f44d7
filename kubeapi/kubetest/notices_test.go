package kubetest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A record is a testing.TB that keeps what is logged.
type record struct {
	testing.TB
	texts []string
}

func (r *record) Logf(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// TestNoticesAreLoggedOnce writes objects of which parts have no effect, several times.
func TestNoticesAreLoggedOnce(t *testing.T) {
	r := &record{TB: t}
	synctest.Test(t, func(t *testing.T) {
		r.TB = t
		env := kubetest.New(r, kubetest.Options{})
		hooks := testkit.Must(kubernetes.NewForConfig(env.Config()))(t).AdmissionregistrationV1()
		named, patch := metav1.ObjectMeta{Name: "a"}, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)
		v, m := hooks.ValidatingWebhookConfigurations(), hooks.MutatingWebhookConfigurations()
		testkit.Must(v.Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named},
			metav1.CreateOptions{}))(t)
		testkit.Must(v.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}))(t)
		testkit.Must(m.Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{ObjectMeta: named},
			metav1.CreateOptions{}))(t)
		if err := m.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	want := []string{
		"kubetest: the webhooks of the ValidatingWebhookConfiguration a are never called; see docs/kubetest.md",
		"kubetest: the webhooks of the MutatingWebhookConfiguration a are never called; see docs/kubetest.md",
	}
	if !slices.Equal(r.texts, want) {
		t.Errorf("got the notices %q, want %q", r.texts, want)
	}
}
