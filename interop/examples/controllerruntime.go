package examples

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ControlPods calls reconcile for every changed pod until ctx ends.
func ControlPods(ctx context.Context, url string, reconcile reconcile.Func) error {
	manager, err := ctrl.NewManager(&rest.Config{Host: url}, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Complete(reconcile); err != nil {
		return err
	}
	return manager.Start(ctx)
}
