package mutants

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
)

// wsprotocolCases returns the cases of the WebSocket protocol. It builds them once, because that
// takes a while. In the group torture-server, a scripted client sends frames to the server. In the
// group torture-client, a scripted server sends frames to the client. [cases.All] does not include
// these cases.
var wsprotocolCases = sync.OnceValue(func() []harness.Case {
	var all []harness.Case
	for _, trial := range serverTrials() {
		all = append(all, harness.Case{
			ID: "torture-server/" + trial.name, Subject: harness.Server, Transports: "ws", Rule: trial.rule(),
			Needs: harness.OwnCollection,
			Run:   trial.onServer,
		})
	}
	for _, trial := range clientTrials() {
		all = append(all, harness.Case{
			ID: "torture-client/" + trial.name, Subject: harness.Client, Transports: "ws", Rule: trial.rule(),
			Needs: harness.InProcess,
			Run:   trial.onClient,
		})
	}
	slices.SortFunc(all, func(a, b harness.Case) int { return strings.Compare(a.ID, b.ID) })
	return all
})

// The cases run in parallel, because some known failures wait for a frame that never arrives.
func TestBothEndsFollowTheProtocol(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	target := reference.New("listwatch", reference.Interceptors{})
	// All known failures run with a short timeout. If it is too short, a run fails, as expected of
	// a known failure.
	impatient := target
	impatient.Patience = 2 * time.Second
	isKnown := func(name string) bool {
		_, expected := known.Reason(name)
		return expected
	}
	var mu sync.Mutex
	var names []string // guarded by mu
	t.Run("cases", func(t *testing.T) {
		for _, c := range wsprotocolCases() {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				report := func(o runner.Outcome) {
					mu.Lock()
					names = append(names, o.Name())
					mu.Unlock()
					checkOutcome(t, o, known)
				}
				runner.Execute(t.Context(), c, impatient, isKnown, report)
				runner.Execute(t.Context(), c, target, func(name string) bool { return !isKnown(name) }, report)
			})
		}
	})
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: the pattern %s matches no run", p)
	}
	t.Logf("%d runs", len(names))
}

// checkOutcome fails t unless the run has passed, or has failed as known.
func checkOutcome(t *testing.T, o runner.Outcome, known *conformance.KnownFailures) {
	t.Helper()
	reason, expected := known.Reason(o.Name())
	switch {
	case o.Verdict == runner.Pass && expected:
		t.Errorf("%s passes, but known_failures.txt lists it: %s", o.Name(), reason)
	case o.Verdict == runner.Pass || o.Verdict == runner.Fail && expected:
	default:
		t.Errorf("%s: %s %s\n%s\n%s", o.Name(), o.Verdict, o.Reason, strings.Join(o.Messages, "\n"),
			strings.Join(o.Timeline, "\n"))
	}
}
