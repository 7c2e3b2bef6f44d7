package wsprotocol

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestWebSocketsStandTorture(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	target := cases.Own("listwatch", cases.Interceptors{})
	for _, c := range cases.Tortures() {
		c.Execute(t.Context(), target, func(string) bool { return true }, func(o cases.Outcome) {
			names = append(names, o.Name())
			reason, expected := known.Reason(o.Name())
			switch {
			case o.Verdict == cases.Pass && expected:
				t.Errorf("%s passes, and known.txt says that it does not: %s", o.Name(), reason)
			case o.Verdict == cases.Pass || o.Verdict == cases.Fail && expected:
			default:
				t.Errorf("%s: %s %s\n%s\n%s", o.Name(), o.Verdict, o.Reason, strings.Join(o.Messages, "\n"), strings.Join(o.Timeline, "\n"))
			}
		})
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known.txt: nothing is called %s", p)
	}
	t.Logf("%d runs", len(names))
}
