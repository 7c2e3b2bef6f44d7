package clientgo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// What the conformance tests of Kubernetes demand of watches (test/e2e/apimachinery/watch.go), each by the name that it has there. They
// wait for what must not come; here a later event shows that it has not come.

// A story is a namespace of configmaps and those who watch it.
type story struct {
	typedcorev1.ConfigMapInterface
	t *testing.T
}

func overEachStory(t *testing.T, test func(s story)) {
	overEach(t, func(t *testing.T, p kubetest.Protocol) {
		test(story{typed(t, kubetest.Start(t).Config(p)).CoreV1().ConfigMaps("watchers"), t})
	})
}

const storyLabel = "watch-this"

func (s story) create(name, label string) *corev1.ConfigMap {
	s.t.Helper()
	return must(s.Create(s.t.Context(), configMap(name, map[string]string{storyLabel: label}, nil), metav1.CreateOptions{}))(s.t)
}

// set updates o to hold n and bear label.
func (s story) set(o *corev1.ConfigMap, n int, label string) *corev1.ConfigMap {
	s.t.Helper()
	o = o.DeepCopy()
	o.Data, o.Labels = map[string]string{"n": fmt.Sprint(n)}, map[string]string{storyLabel: label}
	return must(s.Update(s.t.Context(), o, metav1.UpdateOptions{}))(s.t)
}

func (s story) delete(name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// watch opens a watch for some labels, from a version.
func (s story) watch(version string, labels ...string) watch.Interface {
	s.t.Helper()
	selector := fmt.Sprintf("%s in (%s)", storyLabel, strings.Join(labels, ","))
	w := must(s.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: version, LabelSelector: selector}))(s.t)
	s.t.Cleanup(w.Stop)
	return w
}

// want expects the next event of w, of an object that holds n; 0: nothing. It returns the object's version.
func (s story) want(w watch.Interface, kind watch.EventType, name string, n int) string {
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

// [sig-api-machinery] Watchers should observe add, update, and delete watch notifications on configmaps
func TestWatchersObserveAddUpdateAndDelete(t *testing.T) {
	overEachStory(t, func(s story) {
		ofA, ofB, ofBoth := s.watch("", "a"), s.watch("", "b"), s.watch("", "a", "b")
		a := s.create("a", "a")
		a = s.set(a, 1, "a")
		s.set(a, 2, "a")
		s.delete("a")
		s.create("b", "b")
		s.delete("b")
		for _, w := range []watch.Interface{ofA, ofBoth} {
			s.want(w, watch.Added, "a", 0)
			s.want(w, watch.Modified, "a", 1)
			s.want(w, watch.Modified, "a", 2)
			s.want(w, watch.Deleted, "a", 2)
		}
		for _, w := range []watch.Interface{ofB, ofBoth} {
			s.want(w, watch.Added, "b", 0)
			s.want(w, watch.Deleted, "b", 0)
		}
		// Nobody has got more than that.
		s.create("end-a", "a")
		s.create("end-b", "b")
		s.want(ofA, watch.Added, "end-a", 0)
		s.want(ofB, watch.Added, "end-b", 0)
		s.want(ofBoth, watch.Added, "end-a", 0)
		s.want(ofBoth, watch.Added, "end-b", 0)
	})
}

// [sig-api-machinery] Watchers should be able to start watching from a specific resource version
func TestWatchersStartFromAVersion(t *testing.T) {
	overEachStory(t, func(s story) {
		o := s.create("a", "a")
		first := s.set(o, 1, "a")
		s.set(first, 2, "a")
		s.delete("a")
		w := s.watch(first.ResourceVersion, "a")
		s.want(w, watch.Modified, "a", 2)
		s.want(w, watch.Deleted, "a", 2)
	})
}

// [sig-api-machinery] Watchers should be able to restart watching from the last resource version observed by the previous watch
func TestWatchersRestartFromTheLastVersionThatTheySaw(t *testing.T) {
	overEachStory(t, func(s story) {
		w := s.watch("", "a")
		o := s.set(s.create("a", "a"), 1, "a")
		s.want(w, watch.Added, "a", 0)
		last := s.want(w, watch.Modified, "a", 1)
		w.Stop()
		s.set(o, 2, "a")
		s.delete("a")
		w = s.watch(last, "a")
		s.want(w, watch.Modified, "a", 2)
		s.want(w, watch.Deleted, "a", 2)
	})
}

// [sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements of the selector
func TestWatchersObserveThatAnObjectLeavesTheSelection(t *testing.T) {
	overEachStory(t, func(s story) {
		w := s.watch("", "a")
		o := s.set(s.create("a", "a"), 1, "a")
		s.want(w, watch.Added, "a", 0)
		s.want(w, watch.Modified, "a", 1)
		left := s.set(o, 2, "other")
		if version := s.want(w, watch.Deleted, "a", 1); version != left.ResourceVersion {
			t.Errorf("it left at %s, want the version of the write, %s", version, left.ResourceVersion)
		}
		o = s.set(left, 3, "other")
		o = s.set(o, 4, "a")
		s.want(w, watch.Added, "a", 4)
		s.set(o, 5, "a")
		s.want(w, watch.Modified, "a", 5)
		s.delete("a")
		s.want(w, watch.Deleted, "a", 5)
	})
}

// [sig-api-machinery] Watchers should receive events on concurrent watches in same order
func TestConcurrentWatchersSeeOneOrder(t *testing.T) {
	overEachStory(t, func(s story) {
		const watches, writes = 30, 120
		lead := must(s.Watch(t.Context(), metav1.ListOptions{}))(t)
		t.Cleanup(lead.Stop)
		var writer sync.WaitGroup
		writer.Go(func() {
			defer func() {
				if t.Failed() {
					lead.Stop() // so that nobody waits for what was not written
				}
			}()
			s.scribble(writes)
		})
		// Each starts where the first watch is by then, so that they read live events and history.
		var order []string
		var others []watch.Interface
		for range writes {
			version := versionOf(t, lead)
			order = append(order, version)
			if len(others) < watches {
				w := must(s.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version}))(t)
				t.Cleanup(w.Stop)
				others = append(others, w)
			}
		}
		writer.Wait()
		for i, w := range others {
			for _, want := range order[i+1:] {
				if got := versionOf(t, w); got != want {
					t.Fatalf("watch %d sees version %s, want %s", i, got, want)
				}
			}
		}
	})
}

func versionOf(t *testing.T, w watch.Interface) string {
	t.Helper()
	e := <-w.ResultChan()
	o, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("got %v, want a configmap", e)
	}
	return o.ResourceVersion
}

// scribble creates, updates and deletes a few configmaps, n times in all.
func (s story) scribble(n int) {
	there := make(map[string]*corev1.ConfigMap)
	for i := range n {
		name := fmt.Sprint("m", rand.IntN(5))
		o, kept := there[name]
		switch {
		case !kept:
			there[name] = s.create(name, "a")
		case rand.IntN(3) == 0:
			s.delete(name)
			delete(there, name)
		default:
			there[name] = s.set(o, i+1, "a")
		}
	}
}
