package controllerruntime

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// cleanup is the finalizer of widgets.
const cleanup = "demo.example.com/cleanup"

// ready is the condition of a widget whose ConfigMap is as it should be.
const ready = "Ready"

// A reconciler keeps a ConfigMap for each widget, as controllers are written: it reads from the cache and leaves conflicts to the queue.
type reconciler struct {
	client.Client
	events recorder.EventRecorder // nil: nobody is told

	calls, conflicts atomic.Int64
}

// Reconcile makes what the widget says.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.calls.Add(1)
	w := new(Widget)
	if err := r.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, w)
	if apierrors.IsConflict(err) {
		r.conflicts.Add(1)
	}
	return ctrl.Result{}, err
}

func (r *reconciler) reconcile(ctx context.Context, w *Widget) error {
	if !w.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, w)
	}
	if controllerutil.AddFinalizer(w, cleanup) {
		if err := r.Update(ctx, w); err != nil {
			return err
		}
	}
	made := configMapOf(w)
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, made, func() error {
		made.Data = map[string]string{"text": strings.Repeat(w.Spec.Text, max(w.Spec.Copies, 1))}
		return controllerutil.SetControllerReference(w, made, r.Scheme())
	})
	if err != nil {
		return err
	}
	if r.events != nil && result != controllerutil.OperationResultNone {
		r.events.Eventf(w, made, corev1.EventTypeNormal, "Made", "Reconcile", "%s %s", result, made.Name)
	}
	return r.tellStatus(ctx, w)
}

// tellStatus patches the status, unless it is what it should be, or the widget has changed since.
func (r *reconciler) tellStatus(ctx context.Context, w *Widget) error {
	before := w.copy()
	changed := meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: w.Generation,
	})
	if !changed && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.ObservedGeneration = w.Generation
	return r.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// finalize deletes the ConfigMap, for nobody collects garbage here, and lets the widget go.
func (r *reconciler) finalize(ctx context.Context, w *Widget) error {
	if !controllerutil.ContainsFinalizer(w, cleanup) {
		return nil
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, configMapOf(w))); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(w, cleanup)
	return client.IgnoreNotFound(r.Update(ctx, w))
}

func configMapOf(w *Widget) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-made"}}
}

// options are those of a manager in a test: many may run in one process, and nothing but the server is listened to.
func options() manager.Options {
	return manager.Options{
		Scheme: newScheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4},
	}
}

// A controller is a manager that runs a reconciler.
type controller struct {
	*reconciler
	manager manager.Manager
	stop    func()
}

// startController starts a manager with a reconciler, that ends with the test.
func startController(t *testing.T, s *kubetest.Server, o manager.Options, prepare func(*controller)) *controller {
	t.Helper()
	m := must(manager.New(s.Config(kubetest.HTTP2), o))(t)
	c := &controller{reconciler: &reconciler{Client: m.GetClient()}, manager: m}
	if prepare != nil {
		prepare(c)
	}
	err := ctrl.NewControllerManagedBy(m).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(c.reconciler)
	if err != nil {
		t.Fatal(err)
	}
	c.stop = start(t, m.Start)
	return c
}
