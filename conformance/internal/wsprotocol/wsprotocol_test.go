package wsprotocol

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

// cases returns the cases. It builds them once, because that takes a while.
var cases = sync.OnceValue(Cases)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestBothEndsFollowTheProtocol(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	target := reference.New("listwatch", reference.Interceptors{})
	// Some known failures wait for a frame that never arrives, so run all of them with a short
	// timeout. A timeout that is too short can only make one of these runs fail, which is expected
	// anyway.
	impatient := target
	impatient.Patience = 2 * time.Second
	isKnown := func(name string) bool {
		_, expected := known.Reason(name)
		return expected
	}
	for _, c := range cases() {
		report := func(o runner.Outcome) {
			names = append(names, o.Name())
			reason, expected := known.Reason(o.Name())
			switch {
			case o.Verdict == runner.Pass && expected:
				t.Errorf("%s passes, but known_failures.txt lists it: %s", o.Name(), reason)
			case o.Verdict == runner.Pass || o.Verdict == runner.Fail && expected:
			default:
				t.Errorf("%s: %s %s\n%s\n%s", o.Name(), o.Verdict, o.Reason, strings.Join(o.Messages, "\n"), strings.Join(o.Timeline, "\n"))
			}
		}
		runner.Execute(t.Context(), c, impatient, isKnown, report)
		runner.Execute(t.Context(), c, target, func(name string) bool { return !isKnown(name) }, report)
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: the pattern %s matches no run", p)
	}
	t.Logf("%d runs", len(names))
}
