package conformance_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch/conformance"
)

// summaryFile has a line for each verdict.
const summaryFile = "verdicts/summary.txt"

// A verdict is the content of a folder below verdicts: an unmodified report, and a text about it.
type verdict struct {
	name   string
	levels *conformance.Levels
	// target names what was tested. command repeats the run.
	target, command string
	// explained contains the failed musts that the text explains. Each explanation is a sentence
	// and the smallest request that shows the failure.
	explained []string
}

func readVerdict(t *testing.T, dir string) verdict {
	t.Helper()
	v := verdict{name: filepath.Base(dir)}
	f, err := os.Open(filepath.Join(dir, "report.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var r conformance.Report
	if err := json.NewDecoder(plain).Decode(&r); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	if v.levels = r.Levels; v.levels == nil {
		t.Fatalf("%s: the report has no levels", dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "verdict.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "target":
			v.target = value
		case "command":
			v.command = value
		default:
			if !strings.Contains(value, " | ") {
				t.Errorf("%s: %q: want CASE: SENTENCE | REQUEST", dir, line)
			}
			v.explained = append(v.explained, name)
		}
	}
	return v
}

var update = flag.Bool("update", false, "write verdicts/summary.txt")

// With the flag -update, this test writes the summary of the verdicts instead of comparing it.
func TestSummaryHasEveryVerdict(t *testing.T) {
	dirs, err := filepath.Glob("verdicts/*/verdict.txt")
	if err != nil || len(dirs) < 8 {
		t.Fatalf("got the verdicts %q, %v, want at least 8", dirs, err)
	}
	var summary bytes.Buffer
	table := tabwriter.NewWriter(&summary, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "verdict\tsubject\tlevel\tWatch 1\tWatch 2\tWatch 3")
	for _, file := range dirs {
		v := readVerdict(t, filepath.Dir(file))
		level, row := "none", ""
		if v.levels.Passed > 0 {
			level = fmt.Sprintf("Watch %d", v.levels.Passed)
		}
		var failed []string
		for _, l := range v.levels.Levels {
			row += fmt.Sprintf("\t%d of %d", l.Musts.Passed, l.Musts.Of)
			if n := len(l.Untested); n > 0 {
				row += fmt.Sprintf(", %d not tested", n)
			}
			failed = append(failed, l.Failed...)
		}
		slices.Sort(failed)
		slices.Sort(v.explained)
		if diff := cmp.Diff(failed, v.explained); diff != "" {
			t.Errorf("%s: failed musts (-report +verdict.txt):\n%s", v.name, diff)
		}
		fmt.Fprintf(table, "%s\t%s\t%s%s\n", v.name, v.levels.Subject, level, row)
		if v.target == "" {
			t.Errorf("%s does not say what was tested", file)
		}
		if v.command == "" {
			t.Errorf("%s does not say how to repeat the run", file)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(summaryFile, summary.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(summaryFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary.String(), string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./conformance -run Summary -update (-want +got):\n%s",
			summaryFile, diff)
	}
}
