//go:build !race

package field

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

func newEvent(name string) *core.Event {
	return &core.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: "default"},
		InvolvedObject: core.ObjectReference{Kind: "Pod", Namespace: "default", Name: "full"}, Reason: "Test",
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// testTypedClients writes and reads with a typed client, whose content type is the default one.
// Each write is read at once.
func (c *cluster) testTypedClients(t *testing.T) {
	relayed, err := kubernetes.NewForConfig(c.relayed.config)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := kubernetes.NewForConfig(c.direct.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, version := range []string{"", "0"} {
		o := metav1.ListOptions{ResourceVersion: version}
		same(t, "pods", o, direct.CoreV1().Pods("").List, relayed.CoreV1().Pods("").List,
			func(l *core.PodList) any { return l.Items })
		same(t, "events", o, direct.CoreV1().Events("").List, relayed.CoreV1().Events("").List,
			func(l *core.EventList) any { return l.Items })
		same(t, "jobs", o, direct.BatchV1().Jobs("").List, relayed.BatchV1().Jobs("").List,
			func(l *batch.JobList) any { return l.Items })
		same(t, "nodes", o, direct.CoreV1().Nodes().List, relayed.CoreV1().Nodes().List,
			func(l *core.NodeList) any { return l.Items })
	}
	maps := relayed.CoreV1().ConfigMaps("default")
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=typed"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	made, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Data = map[string]string{"a": "b"}
	if made, err = maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(ctx, "typed", types.StrategicMergePatchType, []byte(`{"data":{"c":"d"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	apply := corev1.ConfigMap("typed", "default").WithData(map[string]string{"e": "f"})
	if _, err := maps.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "tester"}); err != nil {
		t.Error(err)
	}
	want := map[string]string{"a": "b", "c": "d", "e": "f"}
	got, err := maps.Get(ctx, "typed", metav1.GetOptions{})
	if err != nil || !cmp.Equal(got.Data, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: got %v, want a conflict", err)
	}
	if err := maps.Delete(ctx, "typed", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"} {
		select {
		case e := <-watch.ResultChan():
			if string(e.Type) != want {
				t.Errorf("got %s, want %s", e.Type, want)
			}
		case <-contextAfter(t):
			t.Fatalf("no event %s", want)
		}
	}
}

// contextAfter returns a channel that is closed after waitTimeout.
func contextAfter(t *testing.T) <-chan struct{} {
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx.Done()
}

// same compares two typed lists.
func same[L any](t *testing.T, what string, o metav1.ListOptions, direct,
	relayed func(context.Context, metav1.ListOptions) (L, error), items func(L) any,
) {
	t.Helper()
	want, err := direct(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := relayed(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	// The relay sends the apiVersion and the kind of an item, which a kube-apiserver omits.
	if diff := cmp.Diff(items(want), items(got), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Errorf("typed list of %s: (-direct +relayed)\n%s", what, diff)
	}
}
