package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// waitUntilReady waits until the widget is ready and its ConfigMap contains the given text,
// and returns both objects.
func waitUntilReady(t *testing.T, c client.Client, name, text string) (*Widget, *corev1.ConfigMap) {
	t.Helper()
	w := newWidget(name, "")
	m := configMapOf(w)
	eventually(t, fmt.Sprintf("ConfigMap of widget %s with text %q", name, text),
		func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(w), w)
			if err != nil {
				return false, unlessLost(err)
			}
			if w.Status.ObservedGeneration != w.Generation ||
				!meta.IsStatusConditionTrue(w.Status.Conditions, readyCondition) {
				return false, nil
			}
			err = c.Get(ctx, client.ObjectKeyFromObject(m), m)
			return err == nil && m.Data["text"] == text, client.IgnoreNotFound(unlessLost(err))
		})
	return w, m
}

// unlessLost returns err, or nil if the connection was lost, which a restart of the server causes.
func unlessLost(err error) error {
	if testapi.IsLostConnection(err) {
		return nil
	}
	return err
}

// waitUntilDeleted waits until o does not exist.
func waitUntilDeleted(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	eventually(t, "deletion of "+o.GetName(), func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(unlessLost(err))
	})
}

func TestReconcilerCreatesConfigMaps(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	createObjects(t, c, newWidget("early", "a"))
	startController(t, s, managerOptions(), nil)
	createObjects(t, c, newWidget("late", "b"))
	waitUntilReady(t, c, "early", "a")
	w, m := waitUntilReady(t, c, "late", "b")

	if w.Generation != 1 || !controllerutil.ContainsFinalizer(w, widgetFinalizer) {
		t.Errorf("got generation %d and finalizers %v, want 1, because only the spec counts, and %s", w.Generation,
			w.Finalizers, widgetFinalizer)
	}
	owner := m.OwnerReferences
	if len(owner) != 1 || owner[0].UID != w.UID || owner[0].Kind != "Widget" ||
		owner[0].APIVersion != "demo.example.com/v1" || owner[0].Name != "late" {
		t.Errorf("got owners %+v, want the widget", owner)
	}
	w.Spec.Copies = 3
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w, _ = waitUntilReady(t, c, "late", "bbb"); w.Generation != 2 {
		t.Errorf("got generation %d after a change of the spec, want 2", w.Generation)
	}
}

func TestReconcilerWritesNothingTwice(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	start := s.DB.Version()
	r := startController(t, s, managerOptions(), nil)
	const count = 50
	for i := range count {
		createObjects(t, c, newWidget(fmt.Sprint("w", i), "text"))
	}
	for i := range count {
		waitUntilReady(t, c, fmt.Sprint("w", i), "text")
	}
	// Each widget needs four writes: for the widget itself, its finalizer, its ConfigMap and its
	// status.
	if got := int(s.DB.Version() - start); got != 4*count {
		t.Errorf("got %d writes for %d widgets, want %d", got, count, 4*count)
	}
	t.Logf("%d calls, %d conflicts", r.calls.Load(), r.conflicts.Load())
}

func TestReconcilerRepairsConfigMaps(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	startController(t, s, managerOptions(), nil)
	createObjects(t, c, newWidget("w", "text"))
	_, m := waitUntilReady(t, c, "w", "text")

	uid := m.UID
	if err := c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new ConfigMap", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m)
		return err == nil && m.UID != uid, client.IgnoreNotFound(err)
	})
	m.Data["text"] = "broken"
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, c, "w", "text")
}

func TestFinalizerDeletesTheConfigMapFirst(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	r := startController(t, s, managerOptions(), nil)
	createObjects(t, c, newWidget("w", "text"))
	w, m := waitUntilReady(t, c, "w", "text")

	r.stop()
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || w.DeletionTimestamp.IsZero() {
		t.Fatalf("got error %v and deletionTimestamp %v, want the widget with a deletionTimestamp", err,
			w.DeletionTimestamp)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	startController(t, s, managerOptions(), nil)
	waitUntilDeleted(t, c, w)
	waitUntilDeleted(t, c, m)
}

func TestReconcilerContinuesAfterARestart(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	startController(t, s, managerOptions(), nil)
	for _, name := range []string{"kept", "changed", "deleted"} {
		createObjects(t, c, newWidget(name, "before"))
	}
	for _, name := range []string{"kept", "changed", "deleted"} {
		waitUntilReady(t, c, name, "before")
	}
	// While the server is stopped, the test writes to the store directly.
	s.Restart(func() {
		direct := s.Collection("widgets")
		key := func(name string) listwatch.Key { return listwatch.Key{Namespace: "default", Name: name} }
		_, err := direct.Create(t.Context(),
			[]byte(`{"metadata":{"namespace":"default","name":"created"},"spec":{"text":"meanwhile"}}`))
		if err != nil {
			t.Error(err)
		}
		_, err = direct.Update(t.Context(), key("changed"), listwatch.Preconditions{},
			func(old *listwatch.Object) ([]byte, error) {
				return replaceText(t, old.Data, "after"), nil
			})
		if err != nil {
			t.Error(err)
		}
		if _, err := direct.Delete(t.Context(), key("deleted"), listwatch.Preconditions{}); err != nil {
			t.Error(err)
		}
	})
	waitUntilReady(t, c, "kept", "before")
	waitUntilReady(t, c, "changed", "after")
	waitUntilReady(t, c, "created", "meanwhile")
	waitUntilDeleted(t, c, newWidget("deleted", ""))
	waitUntilDeleted(t, c, configMapOf(newWidget("deleted", "")))
}

func TestClientReadsItsOwnWritesFromTheCache(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	o := managerOptions()
	o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	c := startController(t, s, o, nil)
	if !c.manager.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
	pod := podOnNode("default", "p", "web", "n1")
	for i := range 50 {
		createObjects(t, c, pod)
		pod.Labels["round"] = fmt.Sprint(i)
		if err := c.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		got := new(corev1.Pod)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil ||
			got.ResourceVersion != pod.ResourceVersion {
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
	return testkit.Must(json.Marshal(w))(t)
}
