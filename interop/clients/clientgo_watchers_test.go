package clients

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// These tests correspond to Kubernetes' conformance tests of watches
// (test/e2e/apimachinery/watch.go). The comment of each test is the name of the original.
// To check that no event arrives, the originals wait for some time, while these tests wait
// for a later event.

// A watchTest writes and watches the configmaps of one namespace.
type watchTest struct {
	typedcorev1.ConfigMapInterface
	t *testing.T
}

func forEachWatchTest(t *testing.T, test func(s watchTest)) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		test(watchTest{newClientset(t, testapi.Start(t).Config(p)).CoreV1().ConfigMaps("watchers"), t})
	})
}

const watchLabel = "watch-this"

func (s watchTest) create(name, label string) *corev1.ConfigMap {
	s.t.Helper()
	return testkit.Must(s.Create(s.t.Context(), configMap(name, map[string]string{watchLabel: label}, nil),
		metav1.CreateOptions{}))(s.t)
}

// update sets the data and the label of o to the given values, and returns the written object.
func (s watchTest) update(o *corev1.ConfigMap, n int, label string) *corev1.ConfigMap {
	s.t.Helper()
	o = o.DeepCopy()
	o.Data, o.Labels = map[string]string{"n": fmt.Sprint(n)}, map[string]string{watchLabel: label}
	return testkit.Must(s.Update(s.t.Context(), o, metav1.UpdateOptions{}))(s.t)
}

func (s watchTest) delete(name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// watch opens a watch that starts at a version and selects the objects with any of the labels.
func (s watchTest) watch(version string, labels ...string) watch.Interface {
	s.t.Helper()
	selector := fmt.Sprintf("%s in (%s)", watchLabel, strings.Join(labels, ","))
	w := testkit.Must(s.Watch(s.t.Context(),
		metav1.ListOptions{ResourceVersion: version, LabelSelector: selector}))(s.t)
	s.t.Cleanup(w.Stop)
	return w
}

// wantEvent fails the test unless the next event of w has the given type and object name, and
// the object's data is n, or empty if n is 0. It returns the version of the object.
func (s watchTest) wantEvent(w watch.Interface, kind watch.EventType, name string, n int) string {
	s.t.Helper()
	e, ok := <-w.ResultChan()
	o, isMap := e.Object.(*corev1.ConfigMap)
	if !ok || !isMap {
		s.t.Fatalf("got %v, want %s of %s", e, kind, name)
	}
	data := ""
	if n > 0 {
		data = fmt.Sprint(n)
	}
	if e.Type != kind || o.Name != name || o.Data["n"] != data {
		s.t.Errorf("got %s of %s with %q, want %s of %s with %q", e.Type, o.Name, o.Data["n"], kind, name, data)
	}
	return o.ResourceVersion
}

// [sig-api-machinery] Watchers should observe add, update, and delete watch notifications
// on configmaps
func TestWatchersObserveAddUpdateAndDelete(t *testing.T) {
	forEachWatchTest(t, func(s watchTest) {
		ofA, ofB, ofBoth := s.watch("", "a"), s.watch("", "b"), s.watch("", "a", "b")
		a := s.create("a", "a")
		a = s.update(a, 1, "a")
		s.update(a, 2, "a")
		s.delete("a")
		s.create("b", "b")
		s.delete("b")
		for _, w := range []watch.Interface{ofA, ofBoth} {
			s.wantEvent(w, watch.Added, "a", 0)
			s.wantEvent(w, watch.Modified, "a", 1)
			s.wantEvent(w, watch.Modified, "a", 2)
			s.wantEvent(w, watch.Deleted, "a", 2)
		}
		for _, w := range []watch.Interface{ofB, ofBoth} {
			s.wantEvent(w, watch.Added, "b", 0)
			s.wantEvent(w, watch.Deleted, "b", 0)
		}
		// These events must come next. Otherwise the watches received too many events above.
		s.create("end-a", "a")
		s.create("end-b", "b")
		s.wantEvent(ofA, watch.Added, "end-a", 0)
		s.wantEvent(ofB, watch.Added, "end-b", 0)
		s.wantEvent(ofBoth, watch.Added, "end-a", 0)
		s.wantEvent(ofBoth, watch.Added, "end-b", 0)
	})
}

// [sig-api-machinery] Watchers should be able to start watching from a specific resource version
func TestWatchersStartFromAVersion(t *testing.T) {
	forEachWatchTest(t, func(s watchTest) {
		o := s.create("a", "a")
		first := s.update(o, 1, "a")
		s.update(first, 2, "a")
		s.delete("a")
		w := s.watch(first.ResourceVersion, "a")
		s.wantEvent(w, watch.Modified, "a", 2)
		s.wantEvent(w, watch.Deleted, "a", 2)
	})
}

// [sig-api-machinery] Watchers should be able to restart watching from the last resource
// version observed by the previous watch
func TestWatchersRestartFromTheLastVersion(t *testing.T) {
	forEachWatchTest(t, func(s watchTest) {
		w := s.watch("", "a")
		o := s.update(s.create("a", "a"), 1, "a")
		s.wantEvent(w, watch.Added, "a", 0)
		last := s.wantEvent(w, watch.Modified, "a", 1)
		w.Stop()
		s.update(o, 2, "a")
		s.delete("a")
		w = s.watch(last, "a")
		s.wantEvent(w, watch.Modified, "a", 2)
		s.wantEvent(w, watch.Deleted, "a", 2)
	})
}

// [sig-api-machinery] Watchers should observe an object deletion if it stops meeting the
// requirements of the selector
func TestWatchersObserveObjectsLeaving(t *testing.T) {
	forEachWatchTest(t, func(s watchTest) {
		w := s.watch("", "a")
		o := s.update(s.create("a", "a"), 1, "a")
		s.wantEvent(w, watch.Added, "a", 0)
		s.wantEvent(w, watch.Modified, "a", 1)
		left := s.update(o, 2, "other")
		if version := s.wantEvent(w, watch.Deleted, "a", 1); version != left.ResourceVersion {
			t.Errorf("DELETED has version %s, want the version of the write, %s", version, left.ResourceVersion)
		}
		o = s.update(left, 3, "other")
		o = s.update(o, 4, "a")
		s.wantEvent(w, watch.Added, "a", 4)
		s.update(o, 5, "a")
		s.wantEvent(w, watch.Modified, "a", 5)
		s.delete("a")
		s.wantEvent(w, watch.Deleted, "a", 5)
	})
}

// [sig-api-machinery] Watchers should receive events on concurrent watches in same order
func TestConcurrentWatchersSeeTheSameOrder(t *testing.T) {
	forEachWatchTest(t, func(s watchTest) {
		const watches, writes = 30, 120
		lead := testkit.Must(s.Watch(t.Context(), metav1.ListOptions{}))(t)
		t.Cleanup(lead.Stop)
		var writer sync.WaitGroup
		writer.Go(func() {
			defer func() {
				if t.Failed() {
					lead.Stop() // otherwise nextVersion would wait for the missing writes
				}
			}()
			s.writeRandomly(writes)
		})
		// Each further watch starts at the last version that lead returned. Some of its events are
		// then history, and others happen during the watch.
		var order []string
		var others []watch.Interface
		for range writes {
			version := nextVersion(t, lead)
			order = append(order, version)
			if len(others) < watches {
				w := testkit.Must(s.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version}))(t)
				t.Cleanup(w.Stop)
				others = append(others, w)
			}
		}
		writer.Wait()
		for i, w := range others {
			for _, want := range order[i+1:] {
				if got := nextVersion(t, w); got != want {
					t.Fatalf("watch %d returned version %s, want %s", i, got, want)
				}
			}
		}
	})
}

func nextVersion(t *testing.T, w watch.Interface) string {
	t.Helper()
	e := <-w.ResultChan()
	o, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("got %v, want a configmap", e)
	}
	return o.ResourceVersion
}

// writeRandomly creates, updates or deletes one of five configmaps, n times.
func (s watchTest) writeRandomly(n int) {
	existing := make(map[string]*corev1.ConfigMap)
	for i := range n {
		name := fmt.Sprint("m", rand.IntN(5))
		o, exists := existing[name]
		switch {
		case !exists:
			existing[name] = s.create(name, "a")
		case rand.IntN(3) == 0:
			s.delete(name)
			delete(existing, name)
		default:
			existing[name] = s.update(o, i+1, "a")
		}
	}
}
