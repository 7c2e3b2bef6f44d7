package adapters_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testbuild"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience is longer than the default, because a busy machine must not make a test fail.
const patience = time.Minute

func TestExecServer(t *testing.T) {
	p, err := adapters.ExecServer(t.Context(), testbuild.Program(t, "../testdata/hookserver"), os.Stderr, patience)
	if err != nil {
		t.Fatal(err)
	}
	o := conformance.Options{
		Subject: harness.Server,
		Run:     []string{"select", "drain", "resume/expired", "resume/server-restart", "drop/client-close"},
	}
	if n := countPasses(t, p.Target, o); n < 40 {
		t.Errorf("only %d runs passed", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWhenTheCommandExits(t *testing.T) {
	p, err := adapters.ExecClient(t.Context(), `echo '{"can":["h1"]}'; read request`, os.Stderr, patience)
	if err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Execute(t.Context(), p.Target,
		conformance.Options{Subject: harness.Client, Run: []string{"framing", "resume"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, o := range r.Outcomes {
		if o.Verdict.IsFailure() {
			failed[o.ID] = true
		}
	}
	if len(failed) != 1 || r.OK() || r.Left == 0 || !strings.Contains(r.Unfinished, "it has exited") {
		t.Errorf("got failures of %v, unfinished %q, %d cases left; want one, and a command that has exited",
			failed, r.Unfinished, r.Left)
	}
	_ = p.Close()
}

// infinityAdapter is a client that writes an event that is not JSON.
const infinityAdapter = `echo '{"can":["h1"]}'; while read -r line; do
	id=$(echo "$line" | sed -n 's/.*"watch":{"id":\([0-9]*\).*/\1/p')
	[ -z "$id" ] || printf '{"id":%s,"status":200,"headers":{}}\n{"id":%s,"event":{"x":Infinity}}\n' "$id" "$id"
done`

func TestInvalidLineFailsOnlyItsCase(t *testing.T) {
	p, err := adapters.ExecClient(t.Context(), infinityAdapter, os.Stderr, patience)
	if err != nil {
		t.Fatal(err)
	}
	p.Target.Variants = []string{"h1"}
	r, err := conformance.Execute(t.Context(), p.Target, conformance.Options{
		Subject: harness.Client, Run: []string{"event/recreate", "event/unknown-type", "limit/json-depth"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Unfinished != "" || len(r.Outcomes) != 3 {
		t.Errorf("got %d outcomes, unfinished %q; want three and a complete run", len(r.Outcomes), r.Unfinished)
	}
	for _, o := range r.Outcomes {
		shown := strings.Contains(strings.Join(o.Messages, "\n"), `"event":{"x":Infinity}}`)
		if o.ID == "event/unknown-type" {
			if o.Verdict != runner.Skip { // the case needs a client that resumes
				t.Errorf("%s: got %s, want skip", o.Name(), o.Verdict)
			}
		} else if o.Verdict != runner.Fail || !shown {
			t.Errorf("%s: got %s: %q, want a failure that shows the line", o.Name(), o.Verdict, o.Messages)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestInvalidCommandIsRefused(t *testing.T) {
	for command, want := range map[string]string{
		"exit 3":             "it exited before it wrote its first line",
		"echo hello; read x": "not JSON (invalid character 'h' looking for beginning of value): hello",
		`echo '{"url":"http://127.0.0.1:1/","kind":"Thing"}'; read x`: "cannot be tested",
		`echo '{"url":"http://127.0.0.1:1/"}'; read x`:                "kind",
	} {
		if _, err := adapters.ExecServer(t.Context(), command, os.Stderr, 0); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", command, err, want)
		}
	}
	if _, err := adapters.ExecClient(t.Context(), `echo '{"can":[]}'; read x`, os.Stderr, 0); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("client without transports: got %v, want an error of code Invalid", err)
	}
}

// countPasses runs the selected cases, fails t for each failure or warning, and returns the
// number of passes.
func countPasses(t *testing.T, target conformance.Target, o conformance.Options) int {
	t.Helper()
	o.Strict = true
	r, err := conformance.Execute(t.Context(), target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.FailTest(t)
}
