package clients

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"k8s.io/apimachinery/pkg/util/wait"
)

const podColumns = "NAME READY STATUS RESTARTS AGE"

// podWithPhase returns a pod with an empty spec. labels contains the members of its labels, as
// JSON.
func podWithPhase(name, phase, labels string) string {
	return `{"metadata":{"name":"` + name + `","labels":{` + labels + `}},"status":{"phase":"` + phase + `"}}`
}

func replacePod(t *testing.T, s *testapi.Server, name, object string) {
	t.Helper()
	if _, err := s.Collection("pods").Replace(t.Context(), listwatch.Key{Namespace: "default", Name: name},
		[]byte(object)); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, s *testapi.Server, name string) {
	t.Helper()
	if _, err := s.Collection("pods").Delete(t.Context(), listwatch.Key{Namespace: "default", Name: name},
		listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
}

func TestKubectlWatchPrintsEachChange(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	createInStore(t, s, "pods", "default", podWithPhase("a", "Pending", ""))
	all := u.start("get", "pods", "-w")
	kinds := u.start("get", "pods", "-w", "--output-watch-events")
	initial := []string{podColumns, "a 0/0 Pending 0 AGE"}
	all.waitForLines(initial...)
	kinds.waitForLines("EVENT "+podColumns, "ADDED a 0/0 Pending 0 AGE")

	createInStore(t, s, "pods", "default", podWithPhase("b", "Pending", ""))
	replacePod(t, s, "a", podWithPhase("a", "Running", ""))
	deletePod(t, s, "a")
	all.waitForLines(append(initial, "b 0/0 Pending 0 AGE", "a 0/0 Running 0 AGE", "a 0/0 Running 0 AGE")...)
	kinds.waitForLines("EVENT "+podColumns, "ADDED a 0/0 Pending 0 AGE", "ADDED b 0/0 Pending 0 AGE",
		"MODIFIED a 0/0 Running 0 AGE", "DELETED a 0/0 Running 0 AGE")
}

func TestKubectlWatchHonorsSelectors(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	createInStore(t, s, "pods", "default", podWithPhase("a", "Pending", `"app":"web"`),
		podWithPhase("b", "Pending", `"app":"db"`))
	createInStore(t, s, "pods", "other", podWithPhase("c", "Pending", `"app":"web"`))
	labelled := u.start("get", "pods", "-A", "-l", "app=web", "-w")
	fielded := u.start("get", "pods", "--field-selector", "status.phase=Running", "-w", "-o", "name")
	only := u.start("get", "pods", "--watch-only", "-o", `jsonpath={.metadata.name} {.status.phase}{"\n"}`)
	labelled.waitForLines("NAMESPACE "+podColumns, "default a 0/0 Pending 0 AGE", "other c 0/0 Pending 0 AGE")
	// The other watches print nothing at first, so only the server knows that they have started.
	awaitWatches(t, s, 3)

	replacePod(t, s, "b", podWithPhase("b", "Running", `"app":"web"`))
	replacePod(t, s, "a", podWithPhase("a", "Running", `"app":"db"`))
	labelled.waitForLines("NAMESPACE "+podColumns, "default a 0/0 Pending 0 AGE", "other c 0/0 Pending 0 AGE",
		"default b 0/0 Running 0 AGE", "default a 0/0 Pending 0 AGE")
	fielded.waitForLines("pod/b", "pod/a")
	only.waitForLines("b Running", "a Running")
}

func TestKubectlWatchesOverHTTP2(t *testing.T) {
	t.Parallel()
	s, _ := startForKubectl(t)
	u := newKubectlUser(t)
	ca := filepath.Join(u.dir, "ca.pem")
	if err := os.WriteFile(ca, s.Config(testapi.HTTP2).CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without credentials, kubectl would prompt for a name and a password if the server
	// uses TLS.
	u.flags = []string{"--server", s.TLSURL(), "--token", "any"}
	u.wantFailure("certificate signed by unknown authority", "get", "pods")
	u.flags = append(u.flags, "--certificate-authority", ca)
	createInStore(t, s, "pods", "default", podWithPhase("a", "Pending", ""))
	w := u.start("get", "pods", "--watch")
	w.waitForLines(podColumns, "a 0/0 Pending 0 AGE")
	replacePod(t, s, "a", podWithPhase("a", "Running", ""))
	w.waitForLines(podColumns, "a 0/0 Pending 0 AGE", "a 0/0 Running 0 AGE")
	if watches := s.API.Server.Watches(); len(watches) != 1 || watches[0].Transport != "h2" {
		t.Errorf("got watches %+v, want one over HTTP/2", watches)
	}
}

func TestKubectlWait(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	createInStore(t, s, "pods", "default", podWithPhase("a", "Pending", ""))
	ready := u.start("wait", patiently, "--for=condition=Ready", "pod/a")
	running := u.start("wait", patiently, "--for=jsonpath={.status.phase}=Running", "pod/a")
	deleted := u.start("wait", patiently, "--for=delete", "pod/a")
	created := u.start("wait", patiently, "--for=create", "pod/late")
	awaitWatches(t, s, 3)
	replacePod(t, s, "a",
		`{"metadata":{"name":"a"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	ready.waitForExit("pod/a condition met\n")
	running.waitForExit("pod/a condition met\n")
	deletePod(t, s, "a")
	deleted.waitForExit("pod/a condition met\n")
	createInStore(t, s, "pods", "default", podWithPhase("late", "Pending", ""))
	created.waitForExit("pod/late condition met\n")

	u.wantOutput("pod/late condition met\n", "wait", patiently, "--for=create", "pod/late")
	u.wantFailure("timed out waiting for the condition on pods/late", "wait", "--for=condition=Ready", "pod/late",
		"--timeout=1s")
	u.wantFailure("no matching resources found", "wait", "--for=condition=Ready", "pod", "-l", "none=such")
}

// awaitWatches waits until n watches are open.
func awaitWatches(t *testing.T, s *testapi.Server, n int) {
	t.Helper()
	open := func(context.Context) (bool, error) { return len(s.API.Server.Watches()) >= n, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, commandTimeout, true, open); err != nil {
		t.Fatalf("got %d watches, want %d: %v", len(s.API.Server.Watches()), n, err)
	}
}
