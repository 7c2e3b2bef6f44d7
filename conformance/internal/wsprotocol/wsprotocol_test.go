package wsprotocol

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestBothEndsFollowTheProtocol(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	target := reference.New("listwatch", reference.Interceptors{})
	for _, c := range Cases() {
		runner.Execute(t.Context(), c, target, func(string) bool { return true }, func(o runner.Outcome) {
			names = append(names, o.Name())
			reason, expected := known.Reason(o.Name())
			switch {
			case o.Verdict == runner.Pass && expected:
				t.Errorf("%s passes, but known_failures.txt lists it: %s", o.Name(), reason)
			case o.Verdict == runner.Pass || o.Verdict == runner.Fail && expected:
			default:
				t.Errorf("%s: %s %s\n%s\n%s", o.Name(), o.Verdict, o.Reason, strings.Join(o.Messages, "\n"), strings.Join(o.Timeline, "\n"))
			}
		})
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: the pattern %s matches no run", p)
	}
	t.Logf("%d runs", len(names))
}
