//go:build !race

package suites

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newManager returns a manager with a controller that gives each config map a secret.
func newManager(t testing.TB, env *kubetest.Env) ctrl.Manager {
	t.Helper()
	o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	skip := true
	o.Controller.SkipNameValidation = &skip
	m, err := ctrl.NewManager(env.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	index := func(client.Object) []string { return nil }
	if err := m.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "x", index); err != nil {
		t.Fatal(err)
	}
	c := m.GetClient()
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var owner corev1.ConfigMap
		if err := c.Get(ctx, r.NamespacedName, &owner); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		if err := controllerutil.SetControllerReference(&owner, s, m.GetScheme()); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, s))
	})
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(
		reconciler); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManagerRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{})
		m := newManager(t, env)
		env.Run(m) // until the end of the test

		c := m.GetClient()
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := c.Create(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		env.Settle() // retries and requeues take time, but none of it is real
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(owner), &corev1.Secret{}); err != nil {
			t.Error(err)
		}
	})
}

// TestStaleManagerMakesNoLoop deletes an owner while the watch of the owners is down, so that the
// controller creates the dependent again and again.
func TestStaleManagerMakesNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{})
		m := newManager(t, env)
		env.Run(m)
		c := m.GetClient()
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := c.Create(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		env.Faults().Refuse(kubetest.Refusal{
			Status: 503, Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}, Times: 3,
		})
		env.Faults().CutWatches()
		time.Sleep(500 * time.Millisecond)
		if err := c.Delete(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		env.Settle()
		var left corev1.SecretList
		if err := c.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
			t.Errorf("got %d secrets, %v, want none of the deleted owner", len(left.Items), err)
		}
	})
}

// TestEndsAtOnceAfterTheStart ends while the manager still starts its controllers, as a test does
// that fails early.
func TestEndsAtOnceAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kubetest.New(t, kubetest.Options{})
		env.Run(newManager(t, env))
	})
}

// endsTooEarly is the variable that makes TestNamesTheReasonOfAHang run its hanging part.
const endsTooEarly = "LISTWATCH_ENDS_TOO_EARLY"

func TestNamesTheReasonOfAHang(t *testing.T) {
	if os.Getenv(endsTooEarly) != "" {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t, kubetest.New(t, kubetest.Options{}))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- m.Start(ctx) }() // may spin after cancel
			t.Cleanup(func() { <-done })
			cancel()
		})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNamesTheReasonOfAHang$")
	cmd.Env = append(os.Environ(), endsTooEarly+"=1")
	text, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(text), "TestNamesTheReasonOfAHang does not end") {
		t.Errorf("%v, want a message that says why the test does not end\n%s", err, text)
	}
}
