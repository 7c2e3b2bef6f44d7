package clients

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
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

// widgetFinalizer keeps a deleted widget until the reconciler has deleted its ConfigMap.
const widgetFinalizer = "demo.example.com/cleanup"

// readyCondition is the type of the condition that reports that the ConfigMap of a widget is up to
// date.
const readyCondition = "Ready"

// A reconciler keeps a ConfigMap for each widget. Like most controllers it reads from the
// cache, and returns conflicts so that the queue retries.
type reconciler struct {
	client.Client
	events recorder.EventRecorder // nil disables events

	calls, conflicts atomic.Int64
}

// Reconcile updates the ConfigMap of one widget.
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
	if controllerutil.AddFinalizer(w, widgetFinalizer) {
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
	return r.updateStatus(ctx, w)
}

// updateStatus patches the status unless it is up to date. The patch fails if the widget
// has changed.
func (r *reconciler) updateStatus(ctx context.Context, w *Widget) error {
	before := w.copy()
	changed := meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: readyCondition, Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: w.Generation,
	})
	if !changed && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.ObservedGeneration = w.Generation
	return r.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// finalize deletes the ConfigMap, because the server has no garbage collector, and removes the
// finalizer.
func (r *reconciler) finalize(ctx context.Context, w *Widget) error {
	if !controllerutil.ContainsFinalizer(w, widgetFinalizer) {
		return nil
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, configMapOf(w))); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(w, widgetFinalizer)
	return client.IgnoreNotFound(r.Update(ctx, w))
}

func configMapOf(w *Widget) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-made"}}
}

// managerOptions returns options that let many managers run in one process: no manager listens on a
// port, and several controllers may have the same name.
func managerOptions() manager.Options {
	return manager.Options{
		Scheme: newScheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4},
	}
}

// A runningController is a manager that runs a reconciler.
type runningController struct {
	*reconciler
	manager manager.Manager
	stop    func()
}

// startController runs a manager with a reconciler until the test ends. If prepare is not nil,
// startController calls it before the start.
func startController(t *testing.T, s *testapi.Server, o manager.Options,
	prepare func(*runningController),
) *runningController {
	t.Helper()
	m := testkit.Must(manager.New(s.Config(testapi.HTTP2), o))(t)
	c := &runningController{reconciler: &reconciler{Client: m.GetClient()}, manager: m}
	if prepare != nil {
		prepare(c)
	}
	err := ctrl.NewControllerManagedBy(m).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(c.reconciler)
	if err != nil {
		t.Fatal(err)
	}
	c.stop = startInBackground(t, m.Start)
	return c
}
