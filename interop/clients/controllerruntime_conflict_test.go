package clients

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWritesOfAnOldVersionConflict(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	w := newWidget("w", "first")
	createObjects(t, c, w)
	old := w.copy()
	w.Spec.Text = "second"
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	locked := func() client.Patch {
		return client.MergeFromWithOptions(old.copy(), client.MergeFromWithOptimisticLock{})
	}
	changed := func() *Widget {
		o := old.copy()
		o.Spec.Copies, o.Status.ObservedGeneration = 2, 7
		return o
	}
	for name, err := range map[string]error{
		"update":             c.Update(t.Context(), changed()),
		"update of status":   c.Status().Update(t.Context(), changed()),
		"patch with a lock":  c.Patch(t.Context(), changed(), locked()),
		"status with a lock": c.Status().Patch(t.Context(), changed(), locked()),
		"delete of a version": c.Delete(t.Context(), changed(),
			client.Preconditions{ResourceVersion: &old.ResourceVersion}),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	if err := c.Patch(t.Context(), changed(), client.MergeFrom(old.copy())); err != nil {
		t.Errorf("patch without a lock: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil ||
		w.Spec != (WidgetSpec{Text: "second", Copies: 2}) {
		t.Errorf("got %+v, %v, want text %q and 2 copies", w.Spec, err, "second")
	}
}

func TestRetryOnConflictLosesNothing(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	createObjects(t, c, newWidget("w", "0"))
	fastRetries := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Factor: 1, Jitter: 1}
	const writers, each = 8, 20
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for range each {
				err := retry.RetryOnConflict(fastRetries, func() error { return increment(t.Context(), c, "w") })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	w := newWidget("w", "")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil ||
		w.Spec.Text != fmt.Sprint(writers*each) {
		t.Errorf("got %q, %v, want %d", w.Spec.Text, err, writers*each)
	}
}

// increment adds one to the number in the text of a widget.
func increment(ctx context.Context, c client.Client, name string) error {
	w := newWidget(name, "")
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		return err
	}
	n, err := strconv.Atoi(w.Spec.Text)
	if err != nil {
		return err
	}
	w.Spec.Text = strconv.Itoa(n + 1)
	return c.Update(ctx, w)
}

func TestStatusClientWritesStatusOnly(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	w := newWidget("w", "text")
	createObjects(t, c, w)
	w.Spec.Text, w.Status.ObservedGeneration = "not written", 1
	if err := c.Status().Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w.Spec.Text != "text" || w.Status.ObservedGeneration != 1 || w.Generation != 1 {
		t.Errorf("got %+v, want only the status changed", w)
	}
	before := w.copy()
	w.Status.ObservedGeneration = 0
	if err := c.Status().Patch(t.Context(), w, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if w.Status.ObservedGeneration != 0 || w.Generation != 1 {
		t.Errorf("got %+v, want an empty status", w)
	}
}

// By default controller-runtime writes Kubernetes' own types in Protocol Buffers and all other
// types in JSON.
func TestBuiltInAndCustomTypesAreWritten(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	inJSON := s.Config(testapi.HTTP2)
	inJSON.ContentType = runtime.ContentTypeJSON
	for name, config := range map[string]*rest.Config{"default": s.Config(testapi.HTTP2), "json": inJSON} {
		c := testkit.Must(client.New(config, client.Options{Scheme: newScheme()}))(t)
		createObjects(t, c, newWidget(name, "text"))
		createObjects(t, c, podOnNode("default", name, "web", "n1"))
	}
	waitForPods(t, newControllerClient(t, s), "default/default default/json")
}
