//go:build unix

package logical

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
)

var mutants = flag.Bool("mutants", false, "run the chaos test with defects in the packages")

// A mutant is a defect that the chaos test finds.
type mutant struct {
	name      string
	file      string // from the root of the repository
	old, new  string // the text that is replaced
	faults    string // those that bring the defect to light, as in the flag
	wantedLog string // what the failed test prints
}

var allMutants = []mutant{
	{name: "none"}, // with the same flags, the test passes
	{
		// A client that is cut off inside a transaction resumes after it.
		name: "one version per commit", file: "store/postgres/transaction.go", faults: "items",
		old: "v = last - after\n\t\t}\n\t\tif err := f(", new: "}\n\t\tv = last\n\t\tif err := f(",
		wantedLog: "the mirror of",
	},
	{
		// A client that is cut off among the deletes of a TRUNCATE resumes after them.
		name: "one version per TRUNCATE", file: "store/postgres/transaction.go", faults: "TRUNCATE items",
		old: "v = last - after\n\t\t}\n\t\tr.", new: "v = last\n\t\t}\n\t\tr.", wantedLog: "the mirror of",
	},
	{
		// A mirror keeps an object that another server has created and deleted in the gap, or loses
		// the rest of the difference when it is cut off within it.
		name: "gaps that can be the start", file: "watchcache/group.go", faults: "active_pid",
		old: "g.bar(g.last, v)", new: "", wantedLog: "the mirror of",
	},
	{
		// The same, for a watch that waited for its version when the gap began.
		name: "waiting watches start in gaps", file: "internal/history/startwait.go", faults: "active_pid",
		old: "next, err := w.next.begin(&w.start)",
		new: "r := &l.records; barred := r.barred; r.barred = nil; next, err := w.next.begin(&w.start); " +
			"r.barred = barred",
		wantedLog: "that roams: ",
	},
	{
		// A partition that was changed while it was detached shows only in pg_inherits.
		name: "fingerprint without pg_inherits", file: "store/postgres/catalog.go", faults: "DETACH",
		old: "t.relid, h.xmin)", new: "t.relid)", wantedLog: "parts",
	},
	{
		// A writer of documents overwrites what another one has written since it has read.
		name: "writes without a precondition", file: "store/postgres/rowwrite.go", faults: "items",
		old: " || !sameContent(current, old) {", new: " {", wantedLog: "increment",
	},
	{
		// A client that reads another server, not older than its write, does not see the write.
		name: "versions from before the commit", file: "store/postgres/write.go", faults: "items",
		old: "return change.Old.At(v), nil\n\t}\n\treturn o, nil",
		new: "return change.Old.At(v), nil\n\t}\n\treturn o.At(done.locked.version()), nil", wantedLog: "after the response",
	},
	{
		// A large value that an UPDATE does not send is lost.
		name: "updates without all values", file: "store/postgres/transaction.go", faults: "active_pid",
		old: "o.restore(c.new, was)", new: "error(nil)", wantedLog: "server ",
	},
}

// TestChaosFindsMutants shows that the chaos test can fail.
func TestChaosFindsMutants(t *testing.T) {
	if !*mutants {
		t.Skip("takes minutes: run it with -mutants")
	}
	for _, m := range allMutants {
		t.Run(m.name, func(t *testing.T) {
			args := []string{"test", "-vet=off", "-count=1", "-timeout=30m", "-run=^TestMirrorsSurviveChaos$"}
			args = append(args, testbuild.Flags()...)
			if m.file != "" {
				args = append(args, "-overlay="+m.overlay(t))
			}
			args = append(args, ".", "-patience=15s", "-for=2m", "-faults="+m.faults)
			out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
			found := strings.Contains(string(out), "--- FAIL: TestMirrorsSurviveChaos")
			if found != (m.file != "") || !found && err != nil || !strings.Contains(string(out), m.wantedLog) {
				t.Errorf("found a defect: %t, %v\n%s", found, err, out[max(0, len(out)-4000):])
			}
		})
	}
}

// overlay writes the defective file, and returns the path of a file for the flag -overlay of go
// build.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s contains %q %d times, want once: update the mutant", m.file, m.old, n)
	}
	dir := t.TempDir()
	defect, overlay := filepath.Join(dir, "defect.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{original: defect}})
	if err == nil {
		err = os.WriteFile(defect, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, replaced, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

func TestMutantsFitTheSource(t *testing.T) {
	for _, m := range allMutants {
		if m.file != "" {
			m.overlay(t)
		}
	}
}
