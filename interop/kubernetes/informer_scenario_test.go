package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8s.io/client-go/dynamic"
)

// scenarioObjects is the number of objects at the start of a scenario.
const scenarioObjects = 300

// A testedInformer is our informer or client-go's.
type testedInformer interface {
	// handle registers a handler.
	handle(func(notification))
	// run runs the informer until ctx ends.
	run(ctx context.Context)
	// waitForVersion waits until the store has the given version of the object, or a newer one.
	waitForVersion(ctx context.Context, key string, version uint64) error
	// snapshot returns the content of the store.
	snapshot() map[string]objectState
}

// A notification describes a call of a handler. An add has the current state, an update has
// the old and the current state, and a deletion has only the last state.
type notification struct {
	key                   string
	old, current, deleted *objectState
}

// An objectState is the part of an object that a scenario compares. The payload is a label,
// because every type has labels.
type objectState struct {
	version uint64
	payload string
}

// A scenario is a server, a writer to the server, and an informer that follows the server.
type scenario struct {
	*testing.T
	scenarioServer
	network  *clientNetwork
	informer testedInformer
	objects  dynamic.NamespaceableResourceInterface
	random   *rand.Rand
	writes   int
}

// A scenarioServer is a server and the faults that it supports.
type scenarioServer struct {
	serverEndpoint
	// restart stops the server, calls down, and starts the server again. If restart is nil, the
	// server is not restarted.
	restart func(down func())
	// expire makes the server forget its history. If nil, the scenario loses no history.
	expire func()
}

// runScenario makes an informer follow changes through cut connections, a restart and a loss of
// history. One handler blocks for some time, and one is registered late. At the end the
// store and all handlers must have the same objects as the server.
func runScenario(t *testing.T, w scenarioServer, r schema.GroupVersionResource,
	build func(*testing.T, serverEndpoint, schema.GroupVersionResource) testedInformer,
) {
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{
		T: t, scenarioServer: w, network: newClientNetwork(), objects: client.Resource(r),
		random: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range scenarioObjects {
		s.write(i)
	}
	s.serverEndpoint.dial = s.network.dial
	s.informer = build(t, s.serverEndpoint, r)
	quick, slow, late := newEventChecker(), newEventChecker(), newEventChecker()
	slow.blocked = make(chan struct{})
	s.informer.handle(quick.handle)
	s.informer.handle(slow.handle)
	s.start()
	eventually(t, "the initial objects", func() bool { return len(quick.snapshot()) == scenarioObjects })

	s.writeRandomly(100)
	s.informer.handle(late.handle)
	for range 5 {
		s.writeRandomly(40)
		s.network.cut()
	}
	s.interrupt()
	s.loseHistory()
	s.writeRandomly(40)
	close(slow.blocked)
	s.check(map[string]*eventChecker{"quick": quick, "slow": slow, "late": late})
}

// start runs the informer until the test ends.
func (s *scenario) start() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.informer.run(ctx)
	}()
	s.Cleanup(func() { stop(); <-ended })
}

// interrupt disconnects the informer for some time, and writes while it is disconnected.
func (s *scenario) interrupt() {
	waitForAttempt := s.network.refuse()
	if s.restart != nil {
		s.restart(waitForAttempt)
		// The restart has reset the connection of the writer. Read before the next write, because
		// client-go repeats a read that fails for this reason, but not a write.
		s.list()
	} else {
		waitForAttempt()
	}
	s.writeRandomly(40)
	s.network.accept()
}

// loseHistory makes the server forget changes that the informer has not seen.
func (s *scenario) loseHistory() {
	if s.expire == nil {
		return
	}
	s.network.refuse()()
	for i := range 50 {
		s.delete(i)
	}
	s.writeRandomly(40)
	s.expire()
	s.network.accept()
}

// check compares the store and all handlers with a fresh list.
func (s *scenario) check(handlers map[string]*eventChecker) {
	s.Helper()
	last := s.write(scenarioObjects)
	ctx, stop := context.WithTimeout(s.Context(), waitTimeout)
	defer stop()
	if err := s.informer.waitForVersion(ctx, last.key, last.current.version); err != nil {
		s.Fatalf("wait until the store has version %d: %v", last.current.version, err)
	}
	fresh := s.list()
	if diff := cmp.Diff(fresh, s.informer.snapshot(), cmp.AllowUnexported(objectState{})); diff != "" {
		s.Errorf("the store differs from a fresh list (-list +store):\n%s", diff)
	}
	for name, h := range handlers {
		eventually(s.T, "objects of handler "+name, func() bool { return maps.Equal(h.snapshot(), fresh) })
		for _, violation := range h.allViolations() {
			s.Errorf("handler %s: %s", name, violation)
		}
	}
	s.Logf("%d writes; calls: quick %d, slow %d, late %d", s.writes, handlers["quick"].callCount(),
		handlers["slow"].callCount(), handlers["late"].callCount())
}

// writeRandomly creates, updates or deletes an object, n times.
func (s *scenario) writeRandomly(n int) {
	s.Helper()
	for range n {
		if i := s.random.IntN(scenarioObjects); s.random.IntN(4) == 0 {
			s.delete(i)
		} else {
			s.write(i)
		}
	}
}

func scenarioKey(i int) (namespace, scenarioKey string) {
	return fmt.Sprint("team-", i%3), fmt.Sprintf("object-%03d", i)
}

// write creates or updates the i-th object.
func (s *scenario) write(i int) notification {
	s.Helper()
	s.writes++
	namespace, name := scenarioKey(i)
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(s.apiVersion())
	o.SetKind(s.kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"n": fmt.Sprint(s.writes)})
	old, err := s.objects.Namespace(namespace).Get(s.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o, err = s.objects.Namespace(namespace).Create(s.Context(), o, metav1.CreateOptions{})
	} else if err == nil {
		o.SetResourceVersion(old.GetResourceVersion())
		o, err = s.objects.Namespace(namespace).Update(s.Context(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	return notification{key: keyOf(o), current: stateOf(o)}
}

func (s *scenario) delete(i int) {
	s.Helper()
	s.writes++
	namespace, name := scenarioKey(i)
	err := s.objects.Namespace(namespace).Delete(s.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
}

func (s *scenario) list() map[string]objectState {
	s.Helper()
	list, err := s.objects.List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string]objectState)
	for i := range list.Items {
		all[keyOf(&list.Items[i])] = *stateOf(&list.Items[i])
	}
	return all
}
