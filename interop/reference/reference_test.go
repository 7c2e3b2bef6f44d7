//go:build !race

package reference

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

// costly are cases that take many seconds each on a server with an etcd behind it.
var costly = []string{
	"resume/list-then-watch", "large/burst", "conc/1000-watchers", "limit/h2-concurrent-streams",
}

// hanging are cases that the server fails by saying nothing, so that little patience is enough to see it.
var hanging = []string{"framing/ws-rsv", "framing/ws-control-rules", "limit/ws-client-talks"}

func TestKubernetesIsConformantSaveForWhatIsKnown(t *testing.T) {
	known := readKnown(t)
	s := apiserver.Start(t)
	target := open(t, s)
	t.Log(target.Notes)
	outcomes := execute(t, target, conformance.Options{KnownFailures: known, Skip: slices.Concat(costly, hanging)})
	target.Patience = 300 * time.Millisecond
	outcomes = append(outcomes, execute(t, target, conformance.Options{KnownFailures: known, Run: hanging})...)
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
		t.Errorf("known/kubernetes.txt: no case is called %s", p)
	}
	t.Log(counts)
	if counts[cases.Pass] < 100 {
		t.Errorf("%d runs have passed, want at least 100", counts[cases.Pass])
	}
}

// open returns s as a target on which the cases have a custom resource of their own.
func open(t *testing.T, s *apiserver.Server) cases.Target {
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
			t.Errorf("remove what was made: %v", err)
		}
	})
	target := cluster.Target
	// Nobody else writes to its etcd.
	target.Abilities |= cases.ConsecutiveVersions
	// Of our two clients of WebSockets one will do: it is the server that is tested.
	if target.Variants = []string{"h1", "h2", "ws-gorilla"}; !slices.Contains(cluster.Target.Variants, "ws-gorilla") {
		t.Fatalf("the server can be watched over %q alone", cluster.Target.Variants)
	}
	return target
}

// execute runs cases that are about servers.
func execute(t *testing.T, target cases.Target, o conformance.Options) []cases.Outcome {
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

func readKnown(t *testing.T) *conformance.KnownFailures {
	t.Helper()
	f, err := os.Open("known/kubernetes.txt")
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
