package kubectl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/util/wait"
)

const head = "NAME READY STATUS RESTARTS AGE"

// named is a pod with an empty spec.
func named(name, phase, labels string) string {
	return `{"metadata":{"name":"` + name + `","labels":{` + labels + `}},"status":{"phase":"` + phase + `"}}`
}

func replace(t *testing.T, s *kubetest.Server, name, object string) {
	t.Helper()
	if _, err := s.Collection("pods").Replace(t.Context(), listwatch.Key{Namespace: "default", Name: name}, []byte(object)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, s *kubetest.Server, name string) {
	t.Helper()
	if _, err := s.Collection("pods").Delete(t.Context(), listwatch.Key{Namespace: "default", Name: name}, store.Preconditions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAWatchPrintsARowForEachChange(t *testing.T) {
	t.Parallel()
	s, u := start(t)
	put(t, s, "pods", "default", named("a", "Pending", ""))
	all := u.follow("get", "pods", "-w")
	kinds := u.follow("get", "pods", "-w", "--output-watch-events")
	wanted := []string{head, "a 0/0 Pending 0 AGE"}
	all.shows(wanted...)
	kinds.shows("EVENT "+head, "ADDED a 0/0 Pending 0 AGE")

	put(t, s, "pods", "default", named("b", "Pending", ""))
	replace(t, s, "a", named("a", "Running", ""))
	remove(t, s, "a")
	all.shows(append(wanted, "b 0/0 Pending 0 AGE", "a 0/0 Running 0 AGE", "a 0/0 Running 0 AGE")...)
	kinds.shows("EVENT "+head, "ADDED a 0/0 Pending 0 AGE", "ADDED b 0/0 Pending 0 AGE", "MODIFIED a 0/0 Running 0 AGE", "DELETED a 0/0 Running 0 AGE")
}

func TestAWatchShowsItsSelectionAlone(t *testing.T) {
	t.Parallel()
	s, u := start(t)
	put(t, s, "pods", "default", named("a", "Pending", `"app":"web"`), named("b", "Pending", `"app":"db"`))
	put(t, s, "pods", "other", named("c", "Pending", `"app":"web"`))
	labelled := u.follow("get", "pods", "-A", "-l", "app=web", "-w")
	fielded := u.follow("get", "pods", "--field-selector", "status.phase=Running", "-w", "-o", "name")
	only := u.follow("get", "pods", "--watch-only", "-o", `jsonpath={.metadata.name} {.status.phase}{"\n"}`)
	labelled.shows("NAMESPACE "+head, "default a 0/0 Pending 0 AGE", "other c 0/0 Pending 0 AGE")
	// What has begun can be seen by the server alone.
	awaitWatches(t, s, 3)

	replace(t, s, "b", named("b", "Running", `"app":"web"`))
	replace(t, s, "a", named("a", "Running", `"app":"db"`))
	labelled.shows("NAMESPACE "+head, "default a 0/0 Pending 0 AGE", "other c 0/0 Pending 0 AGE", "default b 0/0 Running 0 AGE", "default a 0/0 Pending 0 AGE")
	fielded.shows("pod/b", "pod/a")
	only.shows("b Running", "a Running")
}

func TestAWatchRunsOverHTTP2AndTLS(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	u := newUser(t)
	ca := filepath.Join(u.dir, "ca.pem")
	if err := os.WriteFile(ca, s.Config(kubetest.HTTP2).CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	// To a server with TLS kubectl does not go without credentials; it would ask for a name and a password.
	u.flags = []string{"--server", s.TLSURL(), "--token", "any"}
	u.refused("certificate signed by unknown authority", "get", "pods")
	u.flags = append(u.flags, "--certificate-authority", ca)
	put(t, s, "pods", "default", named("a", "Pending", ""))
	w := u.follow("get", "pods", "--watch")
	w.shows(head, "a 0/0 Pending 0 AGE")
	replace(t, s, "a", named("a", "Running", ""))
	w.shows(head, "a 0/0 Pending 0 AGE", "a 0/0 Running 0 AGE")
	if over := s.API.Server.Watches(); len(over) != 1 || over[0].Transport != "h2" {
		t.Errorf("got watches %+v, want one over HTTP/2", over)
	}
}

func TestWaitEndsWithItsCondition(t *testing.T) {
	t.Parallel()
	s, u := start(t)
	put(t, s, "pods", "default", named("a", "Pending", ""))
	ready := u.follow("wait", "--for=condition=Ready", "pod/a")
	running := u.follow("wait", "--for=jsonpath={.status.phase}=Running", "pod/a")
	gone := u.follow("wait", "--for=delete", "pod/a")
	created := u.follow("wait", "--for=create", "pod/late")
	awaitWatches(t, s, 3)
	replace(t, s, "a", `{"metadata":{"name":"a"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	ready.ends("pod/a condition met\n")
	running.ends("pod/a condition met\n")
	remove(t, s, "a")
	gone.ends("pod/a condition met\n")
	put(t, s, "pods", "default", named("late", "Pending", ""))
	created.ends("pod/late condition met\n")

	u.prints("pod/late condition met\n", "wait", "--for=create", "pod/late")
	u.refused("timed out waiting for the condition on pods/late", "wait", "--for=condition=Ready", "pod/late", "--timeout=1s")
	u.refused("no matching resources found", "wait", "--for=condition=Ready", "pod", "-l", "none=such")
}

// awaitWatches waits until so many watches are open.
func awaitWatches(t *testing.T, s *kubetest.Server, n int) {
	t.Helper()
	open := func(context.Context) (bool, error) { return len(s.API.Server.Watches()) >= n, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, open); err != nil {
		t.Fatalf("%d watches, want %d: %v", len(s.API.Server.Watches()), n, err)
	}
}
