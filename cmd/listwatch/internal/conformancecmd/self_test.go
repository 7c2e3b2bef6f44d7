package conformancecmd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/conformance"
)

func TestSelfInjectsFaults(t *testing.T) {
	program := listwatchProgram(t)
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"conformance"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "r.json")
	out := run("self", "--run", "handshake/accept-406", "--faults", "1s", "--histories", dir, "--json", file,
		"--timeout", "2m")
	for _, want := range []string{"under faults 0 violations of", "ended connections"} {
		if !strings.Contains(out, want) {
			t.Errorf("self: got the output %s, want %q", out, want)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r conformance.Report
	if err := json.Unmarshal(data, &r); err != nil || r.Robustness == nil || r.Robustness.Report.Summary.Events == 0 {
		t.Errorf("got %+v, %v; want the counts of a run under faults", r, err)
	}
	if out := run("check", dir); !strings.Contains(out, "1 history checked, 0 failed") {
		t.Errorf("check of the stored history: got the output %s", out)
	}
}
