//go:build !race

package kubernetes

import (
	"slices"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
)

// slowCases are skipped, because each takes many seconds on a server that stores its data in etcd.
var slowCases = []string{
	"resume/list-then-watch", "large/burst", "conc/1000-watchers", "limit/h2-concurrent-streams",
}

// silentCases fail because the server does not respond. They run with a short timeout.
var silentCases = []string{"framing/ws-rsv", "framing/ws-control-rules", "limit/ws-client-floods"}

func TestKubernetesIsConformant(t *testing.T) {
	known, names := testKubernetes(t, apiserver.Start(t), 100)
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: no case is called %s", p)
	}
}

func TestKubernetesIsConformantOverOurHTTP2(t *testing.T) {
	testKubernetes(t, startLoopServer(t).Server, 40, "h2")
}

// testKubernetes runs the cases in the given variants, such as "h2". Without variants, it uses the
// variants that openTarget selects. At least the given number of runs must pass. It returns the
// content of known_failures.txt and the names of all runs.
func testKubernetes(t *testing.T, s *apiserver.Server, passes int, variants ...string) (*conformance.KnownFailures,
	[]string,
) {
	t.Helper()
	known, err := conformance.ReadKnownFailures("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	target := openTarget(t, s)
	if len(variants) > 0 {
		target.Variants = variants
	}
	t.Log(target.Notes)
	target.Patience = time.Minute // only failing cases wait that long
	outcomes := runCases(t, target,
		conformance.Options{KnownFailures: known, Skip: slices.Concat(slowCases, silentCases)})
	target.Patience = 300 * time.Millisecond
	outcomes = append(outcomes, runCases(t, target, conformance.Options{KnownFailures: known, Run: silentCases})...)
	counts := map[conformance.Verdict]int{}
	var names []string
	for _, o := range outcomes {
		counts[o.Verdict]++
		names = append(names, o.Name())
		if o.Verdict.IsFailure() || o.Verdict == runner.Warn {
			t.Errorf("%s: %s: %s\n%s %q", o.Name(), o.Verdict, o.Rule, o.Reason, o.Messages)
		}
	}
	t.Log(counts)
	if counts[runner.Pass] < passes {
		t.Errorf("got %d passed runs, want at least %d", counts[runner.Pass], passes)
	}
	return known, names
}

// openTarget creates a custom resource at s for the cases, and returns a target that uses it.
func openTarget(t *testing.T, s *apiserver.Server) conformance.Target {
	t.Helper()
	target := openAt(t, s.URL, access(s))
	// One of our three WebSocket clients is sufficient to test the server.
	if all := target.Variants; !slices.Contains(all, "ws-native") {
		t.Fatalf("got variants %q, want ws-native among them", all)
	}
	target.Variants = []string{"h1", "h2", "ws-native"}
	return target
}

// openAt creates a custom resource at a server with Kubernetes' API for the cases, and returns a
// target that uses it.
func openAt(t *testing.T, url string, o adapters.Options) conformance.Target {
	t.Helper()
	cluster, err := adapters.Kube(t.Context(), url, "", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("delete the custom resource: %v", err)
		}
	})
	target := cluster.Target
	// No other program writes to the server's etcd, so versions have no gaps.
	target.Abilities |= harness.ConsecutiveVersions
	target.Variants = slices.DeleteFunc(target.Variants,
		func(v string) bool { return v == "ws-gorilla" || v == "ws-nhooyr" })
	return target
}

// runCases runs the cases that test servers.
func runCases(t *testing.T, target conformance.Target, o conformance.Options) []conformance.Outcome {
	t.Helper()
	o.Subject = harness.Server
	report, err := conformance.Execute(t.Context(), target, o, func(o conformance.Outcome) {
		if o.Verdict != runner.Skip {
			t.Logf("%s %s %.3f s", o.Verdict, o.Name(), o.Seconds)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return report.Outcomes
}
