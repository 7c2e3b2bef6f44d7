package adapters_test

import (
	"os"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/testbuild"
)

// A client that follows docs/protocol.md must pass, even if it behaves differently from this
// module's client.
func TestCorrectClientsMayDiffer(t *testing.T) {
	program := testbuild.Program(t, "./testdata/client")
	for name, test := range map[string]struct {
		flags string
		run   []string
	}{
		"it reports its bookmarks": {
			"-bookmarks", []string{"bookmark/not-to-handlers", "resume/restart"},
		},
		"it resumes before the newest version": {"-before", []string{"resume/rv-opaque-client"}},
		"it drops bytes of a broken response":  {"-drops", []string{"framing/truncated-final"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startClient(t, program+" "+test.flags)
			if n := countPasses(t, p.Target,
				conformance.Options{Subject: harness.Client, Run: test.run}); n < len(test.run) {
				t.Errorf("%d runs passed, want %d", n, len(test.run))
			}
		})
	}
}

func TestListingClientNeedsNoInitialEvents(t *testing.T) {
	p := startClient(t, testbuild.Program(t, "./testdata/client")+" -can h1,resume,initial,lists")
	r, err := conformance.Execute(t.Context(), p.Target, conformance.Options{
		Subject: harness.Client, Run: []string{"initial/cut-short", "initial/fallback"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != 2 {
		t.Fatalf("got %d outcomes, want 2", len(r.Outcomes))
	}
	for _, o := range r.Outcomes {
		if o.Verdict != runner.Skip || !o.Inapplicable {
			t.Errorf("%s: got %s, inapplicable %v; want a case that does not concern the client", o.ID, o.Verdict,
				o.Inapplicable)
		}
	}
}

func startClient(t *testing.T, command string) *adapters.Process {
	t.Helper()
	p, err := adapters.ExecClient(t.Context(), command, os.Stderr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
