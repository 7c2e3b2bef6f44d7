//go:build !race

package suites

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	parallelTests = 200
	// widgetsPerTest is the number of objects that a test of the operator creates. The controller
	// then writes the status of each.
	widgetsPerTest = 10
)

// A widget is an object of the definition in kubetest's testdata/crds.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Color    string `json:"color,omitempty"`
		Replicas int    `json:"replicas,omitempty"`
	} `json:"spec"`
	Status struct {
		Replicas int `json:"replicas,omitempty"`
	} `json:"status,omitzero"`
}

// DeepCopyObject implements [kuberuntime.Object].
func (w *widget) DeepCopyObject() kuberuntime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

// DeepCopyObject implements [kuberuntime.Object].
func (l *widgetList) DeepCopyObject() kuberuntime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}

// widgetWebhook gives each widget a color, and refuses negative replicas.
type widgetWebhook struct{}

func (widgetWebhook) Default(_ context.Context, w *widget) error {
	w.Spec.Color = "green"
	return nil
}

func (widgetWebhook) ValidateCreate(_ context.Context, w *widget) (admission.Warnings, error) {
	if w.Spec.Replicas < 0 {
		return nil, errors.New("negative replicas")
	}
	return nil, nil
}

func (h widgetWebhook) ValidateUpdate(ctx context.Context, _, w *widget) (admission.Warnings, error) {
	return h.ValidateCreate(ctx, w)
}

func (widgetWebhook) ValidateDelete(context.Context, *widget) (admission.Warnings, error) {
	return nil, nil
}

// newOperator returns a manager whose controller writes the status of widgets, and calls done for
// each write.
func newOperator(env *kubetest.Env, webhooks bool, done func()) (ctrl.Manager, error) {
	scheme := kuberuntime.NewScheme()
	gv := schema.GroupVersion{Group: "demo.example.com", Version: "v1"}
	scheme.AddKnownTypeWithName(gv.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(gv.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, gv)
	o := ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Port: -1, WebhookMux: env.WebhookMux()}),
	}
	skip := true
	o.Controller.SkipNameValidation = &skip
	m, err := ctrl.NewManager(env.Config(), o)
	if err != nil {
		return nil, err
	}
	if webhooks {
		var h widgetWebhook
		err := ctrl.NewWebhookManagedBy(m, &widget{}).WithDefaulter(h).WithValidator(h).Complete()
		if err != nil {
			return nil, err
		}
	}
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var w widget
		if err := m.GetClient().Get(ctx, r.NamespacedName, &w); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if w.Status.Replicas == w.Spec.Replicas {
			return reconcile.Result{}, nil
		}
		w.Status.Replicas = w.Spec.Replicas
		if err := m.GetClient().Status().Update(ctx, &w); err != nil {
			return reconcile.Result{}, err
		}
		done()
		return reconcile.Result{}, nil
	})
	return m, ctrl.NewControllerManagedBy(m).For(&widget{}).Complete(reconciler)
}

// testOperator does what a test of an operator does: it starts an Env with a definition and a
// manager, creates objects, and waits until the controller has written the status of all.
func testOperator(t *scope, webhooks bool) {
	defer t.end()
	o := kubetest.Options{CRDs: []string{"../../kubeapi/kubetest/testdata/crds"}}
	if webhooks {
		o.Webhooks = []string{"testdata/operator"}
	}
	var statuses sync.WaitGroup
	statuses.Add(widgetsPerTest)
	env := kubetest.New(t, o)
	m, err := newOperator(env, webhooks, statuses.Done)
	if err != nil {
		t.Error(err)
		return
	}
	env.Run(m)
	for i := range widgetsPerTest {
		w := &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("w", i)}}
		w.Spec.Color, w.Spec.Replicas = "red", 3
		if err := m.GetClient().Create(context.Background(), w); err != nil {
			t.Error(err)
			return
		}
		if webhooks != (w.Spec.Color == "green") {
			t.Errorf("got the color %q with webhooks: %v", w.Spec.Color, webhooks)
		}
	}
	statuses.Wait()
}

// BenchmarkParallelTests compares parallel tests of an operator that has webhooks with the same
// tests of an operator without. It reports the ratio of the times, and the ratio of the CPU times,
// which depends less on other programs. A test with webhooks should take at most 1.5 times as long.
func BenchmarkParallelTests(b *testing.B) {
	var elapsed, cpu [2]time.Duration
	for i := 0; b.Loop(); i++ {
		for j := range 2 {
			side := (i + j) % 2 // each side begins in every second round
			runtime.GC()        // the garbage of one side is not paid by the other
			start, cpuStart := time.Now(), cpuTime(b)
			var tests sync.WaitGroup
			for range parallelTests {
				tests.Go(func() { testOperator(&scope{TB: b}, side == 1) })
			}
			tests.Wait()
			elapsed[side] += time.Since(start)
			cpu[side] += cpuTime(b) - cpuStart
		}
	}
	perTest := func(d time.Duration) float64 {
		return float64(d) / float64(time.Millisecond) / float64(b.N*parallelTests)
	}
	b.ReportMetric(float64(elapsed[1])/float64(elapsed[0]), "ratio")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-ratio")
	b.ReportMetric(perTest(cpu[0]), "plain-cpu-ms/test")
	b.ReportMetric(perTest(cpu[1]), "webhooks-cpu-ms/test")
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
