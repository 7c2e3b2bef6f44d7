//go:build !race

package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
)

// slowCases take many seconds each on a server that stores in etcd.
var slowCases = []string{
	"resume/list-then-watch", "large/burst", "conc/1000-watchers", "limit/h2-concurrent-streams",
}

// silentCases fail because the server does not respond, so they run with a short timeout.
var silentCases = []string{"framing/ws-rsv", "framing/ws-control-rules", "limit/ws-client-talks"}

func TestKubernetesIsConformant(t *testing.T) {
	known := readKnownFailures(t)
	s := apiserver.Start(t)
	target := openTarget(t, s)
	t.Log(target.Notes)
	outcomes := runCases(t, target, conformance.Options{KnownFailures: known, Skip: slices.Concat(slowCases, silentCases)})
	target.Patience = 300 * time.Millisecond
	outcomes = append(outcomes, runCases(t, target, conformance.Options{KnownFailures: known, Run: silentCases})...)
	counts := map[cases.Verdict]int{}
	var names []string
	for _, o := range outcomes {
		counts[o.Verdict]++
		names = append(names, o.Name())
		if o.Verdict.IsFailure() || o.Verdict == cases.Warn {
			t.Errorf("%s: %s: %s\n%s %q", o.Name(), o.Verdict, o.Says, o.Reason, o.Messages)
		}
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: no case is called %s", p)
	}
	t.Log(counts)
	if counts[cases.Pass] < 100 {
		t.Errorf("got %d passed runs, want at least 100", counts[cases.Pass])
	}
}

// openTarget returns s as a target. The cases use a custom resource that is created for them.
func openTarget(t *testing.T, s *apiserver.Server) cases.Target {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	cluster, err := adapters.Kube(t.Context(), s.URL, "", adapters.Options{
		TLS: &tls.Config{RootCAs: pool}, Header: http.Header{"Authorization": {"Bearer " + s.Token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("delete the custom resource: %v", err)
		}
	})
	target := cluster.Target
	// There is no other writer in its etcd.
	target.Abilities |= cases.ConsecutiveVersions
	// One of our two WebSocket clients is enough to test the server.
	if target.Variants = []string{"h1", "h2", "ws-gorilla"}; !slices.Contains(cluster.Target.Variants, "ws-gorilla") {
		t.Fatalf("got variants %q, want ws-gorilla among them", cluster.Target.Variants)
	}
	return target
}

// runCases runs the cases that test servers.
func runCases(t *testing.T, target cases.Target, o conformance.Options) []cases.Outcome {
	t.Helper()
	o.Subject = cases.Server
	report, err := conformance.Execute(t.Context(), target, o, func(o cases.Outcome) {
		if o.Verdict != cases.Skip {
			t.Logf("%s %s %.3f s", o.Verdict, o.Name(), o.Seconds)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return report.Outcomes
}

func readKnownFailures(t *testing.T) *conformance.KnownFailures {
	t.Helper()
	f, err := os.Open("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known, err := conformance.ParseKnownFailures(f)
	if err != nil {
		t.Fatal(err)
	}
	return known
}
