package informer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// objects is how many there are at the start of a scenario.
const objects = 300

// A subject is an informer under test.
type subject interface {
	// handle registers a handler.
	handle(func(change))
	// run follows the server until ctx ends.
	run(ctx context.Context)
	// reaches waits until the store has what was written to key at version.
	reaches(ctx context.Context, key string, version uint64) error
	// state is what the store has.
	state() map[string]seen
}

// A change is what a handler is told: now of an add, old and now of an update, gone, the last state, of a deletion.
type change struct {
	key            string
	old, now, gone *seen
}

// seen is what a scenario looks at of an object. Its payload is a label, so that every type has it.
type seen struct {
	version uint64
	n       string
}

// A scene is a server, somebody who writes to it, and a subject that follows it.
type scene struct {
	*testing.T
	world
	lines   *wire
	subject subject
	objects dynamic.NamespaceableResourceInterface
	random  *rand.Rand
	writes  int
}

// A world is a server, and what can be done to it.
type world struct {
	endpoint
	// restart stops the server, calls down and starts it again; nil: it can't be.
	restart func(down func())
	// expire makes the server forget its history; nil: it can't be made to.
	expire func()
}

// play runs the scenario: the state is followed, then changes over cut connections, a restart and lost history, with a handler that hangs
// and one that comes late. At the end everybody has what the server has.
func play(t *testing.T, w world, r schema.GroupVersionResource, build func(*testing.T, endpoint, schema.GroupVersionResource) subject) {
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, world: w, lines: newWire(), objects: client.Resource(r), random: rand.New(rand.NewPCG(1, 2))}
	for i := range objects {
		s.put(i)
	}
	s.endpoint.dial = s.lines.dial
	s.subject = build(t, s.endpoint, r)
	quick, slow, late := newHandler(), newHandler(), newHandler()
	slow.gate = make(chan struct{})
	s.subject.handle(quick.take)
	s.subject.handle(slow.take)
	s.start()
	s.eventually("the first state", func() bool { return len(quick.has()) == objects })

	s.churn(100)
	s.subject.handle(late.take)
	for range 5 {
		s.churn(40)
		s.lines.cut()
	}
	s.goAway()
	s.forget()
	s.churn(40)
	close(slow.gate)
	s.check(map[string]*handler{"quick": quick, "slow": slow, "late": late})
}

// start runs the subject until the test ends.
func (s *scene) start() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.subject.run(ctx)
	}()
	s.Cleanup(func() { stop(); <-ended })
}

// goAway is a server that can't be reached for a while, and is written to meanwhile.
func (s *scene) goAway() {
	refused := s.lines.refuse()
	if s.restart != nil {
		s.restart(refused)
	} else {
		refused()
	}
	s.churn(40)
	s.lines.accept()
}

// forget makes the subject miss some history.
func (s *scene) forget() {
	if s.expire == nil {
		return
	}
	s.lines.refuse()()
	for i := range 50 {
		s.remove(i)
	}
	s.churn(40)
	s.expire()
	s.lines.accept()
}

// check holds everybody against a fresh list.
func (s *scene) check(handlers map[string]*handler) {
	s.Helper()
	last := s.put(objects)
	ctx, stop := context.WithTimeout(s.Context(), patience)
	defer stop()
	if err := s.subject.reaches(ctx, last.key, last.now.version); err != nil {
		s.Fatalf("the store: version %d: %v", last.now.version, err)
	}
	fresh := s.list()
	if diff := cmp.Diff(fresh, s.subject.state(), cmp.AllowUnexported(seen{})); diff != "" {
		s.Errorf("the store is other than a fresh list (-list +store):\n%s", diff)
	}
	for name, h := range handlers {
		s.eventually("handler "+name, func() bool { return maps.Equal(h.has(), fresh) })
		for _, wrong := range h.complaints() {
			s.Errorf("handler %s: %s", name, wrong)
		}
	}
	s.Logf("%d writes; calls: quick %d, slow %d, late %d", s.writes, handlers["quick"].told(), handlers["slow"].told(), handlers["late"].told())
}

// patience is how long a test waits for what must come. Only a test that fails waits so long.
const patience = 2 * time.Minute

func (s *scene) eventually(what string, done func() bool) {
	s.Helper()
	check := func(context.Context) (bool, error) { return done(), nil }
	if err := wait.PollUntilContextTimeout(s.Context(), 2*time.Millisecond, patience, true, check); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// churn changes, deletes and creates n times.
func (s *scene) churn(n int) {
	s.Helper()
	for range n {
		if i := s.random.IntN(objects); s.random.IntN(4) == 0 {
			s.remove(i)
		} else {
			s.put(i)
		}
	}
}

func name(i int) (namespace, name string) {
	return fmt.Sprint("team-", i%3), fmt.Sprintf("object-%03d", i)
}

// put creates or changes the i-th object.
func (s *scene) put(i int) change {
	s.Helper()
	s.writes++
	namespace, name := name(i)
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(s.apiVersion())
	o.SetKind(s.kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"n": fmt.Sprint(s.writes)})
	was, err := s.objects.Namespace(namespace).Get(s.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o, err = s.objects.Namespace(namespace).Create(s.Context(), o, metav1.CreateOptions{})
	} else if err == nil {
		o.SetResourceVersion(was.GetResourceVersion())
		o, err = s.objects.Namespace(namespace).Update(s.Context(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	return change{key: keyOf(o), now: look(o)}
}

func (s *scene) remove(i int) {
	s.Helper()
	s.writes++
	namespace, name := name(i)
	err := s.objects.Namespace(namespace).Delete(s.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
}

func (s *scene) list() map[string]seen {
	s.Helper()
	list, err := s.objects.List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string]seen)
	for i := range list.Items {
		all[keyOf(&list.Items[i])] = *look(&list.Items[i])
	}
	return all
}
