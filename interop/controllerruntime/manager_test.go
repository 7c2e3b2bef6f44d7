package controllerruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/store"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// made waits until the widget is ready and its ConfigMap has text, and returns both.
func made(t *testing.T, c client.Client, name, text string) (*Widget, *corev1.ConfigMap) {
	t.Helper()
	w := newWidget(name, "")
	m := configMapOf(w)
	eventually(t, fmt.Sprintf("widget %s makes %q", name, text), func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return false, err
		}
		if w.Status.ObservedGeneration != w.Generation || !meta.IsStatusConditionTrue(w.Status.Conditions, ready) {
			return false, nil
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m)
		return err == nil && m.Data["text"] == text, client.IgnoreNotFound(err)
	})
	return w, m
}

// gone waits until o is not there.
func gone(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	eventually(t, o.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func TestReconcilerMakesWhatEachWidgetSays(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	create(t, c, newWidget("early", "a"))
	startController(t, s, options(), nil)
	create(t, c, newWidget("late", "b"))
	made(t, c, "early", "a")
	w, m := made(t, c, "late", "b")

	if w.Generation != 1 || !controllerutil.ContainsFinalizer(w, cleanup) {
		t.Errorf("got generation %d and finalizers %v, want 1, for neither status nor metadata count, and ours", w.Generation, w.Finalizers)
	}
	owner := m.OwnerReferences
	if len(owner) != 1 || owner[0].UID != w.UID || owner[0].Kind != "Widget" || owner[0].APIVersion != "demo.example.com/v1" || owner[0].Name != "late" {
		t.Errorf("got the owners %+v, want the widget", owner)
	}
	w.Spec.Copies = 3
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w, _ = made(t, c, "late", "bbb"); w.Generation != 2 {
		t.Errorf("got generation %d after a change of the spec, want 2", w.Generation)
	}
}

func TestReconcilerWritesNothingTwice(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	start := s.DB.Version()
	r := startController(t, s, options(), nil)
	const count = 50
	for i := range count {
		create(t, c, newWidget(fmt.Sprint("w", i), "text"))
	}
	for i := range count {
		made(t, c, fmt.Sprint("w", i), "text")
	}
	// The widget, its finalizer, its ConfigMap and its status.
	if got := int(s.DB.Version() - start); got != 4*count {
		t.Errorf("%d widgets took %d writes, want %d", count, got, 4*count)
	}
	t.Logf("%d calls, %d conflicts", r.calls.Load(), r.conflicts.Load())
}

func TestReconcilerMendsWhatOthersBreak(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	startController(t, s, options(), nil)
	create(t, c, newWidget("w", "text"))
	_, m := made(t, c, "w", "text")

	uid := m.UID
	if err := c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another ConfigMap", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m)
		return err == nil && m.UID != uid, client.IgnoreNotFound(err)
	})
	m.Data["text"] = "broken"
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	made(t, c, "w", "text")
}

func TestFinalizerHoldsAWidgetUntilItsConfigMapIsGone(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	r := startController(t, s, options(), nil)
	create(t, c, newWidget("w", "text"))
	w, m := made(t, c, "w", "text")

	r.stop()
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || w.DeletionTimestamp.IsZero() {
		t.Fatalf("got %v and a deletionTimestamp of %v, want the widget to be held", err, w.DeletionTimestamp)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	startController(t, s, options(), nil)
	gone(t, c, w)
	gone(t, c, m)
}

func TestReconcilerGoesOnAfterARestart(t *testing.T) {
	s := kubetest.Start(t, widgets)
	c := newClient(t, s)
	startController(t, s, options(), nil)
	for _, name := range []string{"kept", "changed", "deleted"} {
		create(t, c, newWidget(name, "before"))
	}
	for _, name := range []string{"kept", "changed", "deleted"} {
		made(t, c, name, "before")
	}
	// Nobody but the store is there meanwhile.
	s.Restart(func() {
		direct := s.Collection("widgets")
		key := func(name string) listwatch.Key { return listwatch.Key{Namespace: "default", Name: name} }
		_, err := direct.Create(t.Context(), []byte(`{"metadata":{"namespace":"default","name":"created"},"spec":{"text":"meanwhile"}}`))
		if err != nil {
			t.Error(err)
		}
		_, err = direct.Update(t.Context(), key("changed"), store.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
			return replaceText(t, old.Data, "after"), nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := direct.Delete(t.Context(), key("deleted"), store.Preconditions{}); err != nil {
			t.Error(err)
		}
	})
	made(t, c, "kept", "before")
	made(t, c, "changed", "after")
	made(t, c, "created", "meanwhile")
	gone(t, c, newWidget("deleted", ""))
	gone(t, c, configMapOf(newWidget("deleted", "")))
}

func TestClientReadsItsOwnWritesFromTheCache(t *testing.T) {
	s := kubetest.Start(t, widgets)
	o := options()
	o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	c := startController(t, s, o, nil)
	if !c.manager.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has no state")
	}
	pod := newPod("default", "p", "web", "n1")
	for i := range 50 {
		create(t, c, pod)
		pod.Labels["round"] = fmt.Sprint(i)
		if err := c.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		got := new(corev1.Pod)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil || got.ResourceVersion != pod.ResourceVersion {
			t.Fatalf("round %d: got version %q, %v, want %s", i, got.ResourceVersion, err, pod.ResourceVersion)
		}
		if err := c.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		list := new(corev1.PodList)
		if err := c.List(t.Context(), list); err != nil || len(list.Items) != 0 {
			t.Fatalf("round %d: got %d pods after the delete, %v, want none", i, len(list.Items), err)
		}
		pod.ResourceVersion, pod.UID = "", ""
	}
}

func replaceText(t *testing.T, data []byte, text string) []byte {
	t.Helper()
	w := new(Widget)
	if err := json.Unmarshal(data, w); err != nil {
		t.Error(err)
	}
	w.Spec.Text = text
	return must(json.Marshal(w))(t)
}
