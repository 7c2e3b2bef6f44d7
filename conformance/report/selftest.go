package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/mutants"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// robustnessGroup and mutantGroup are the groups in the names of self tests.
const (
	robustnessGroup = "faults"
	mutantGroup     = "mutants"
)

// A selfTestFinding is a mutant that survived or a problem that the robustness test found.
type selfTestFinding struct {
	Name, Rule string
	Messages   []string
}

// selfTestFindings returns the mutants that survived, and the problems of the robustness
// test.
func selfTestFindings(r *conformance.Report) (all []selfTestFinding) {
	if r.Mutants != nil {
		for _, t := range r.Mutants.Trials {
			if mutantVerdict(t) == runner.Fail {
				all = append(all, selfTestFinding{
					mutantGroup + "/" + t.Name, "the cases must detect this defect of a server or client",
					[]string{"cases that did not detect it: " + strings.Join(t.MissedBy, ", ")},
				})
			}
		}
	}
	if f := r.Robustness; f != nil && !f.OK() {
		all = append(all, selfTestFinding{robustnessGroup, "under faults every watcher must see every write exactly once and in order", robustnessMessages(f)})
	}
	return all
}

func failedSelfTests(r *conformance.Report) (names []string) {
	for _, f := range selfTestFindings(r) {
		names = append(names, f.Name)
	}
	return names
}

func robustnessMessages(f *robustness.Result) []string {
	lines := slices.Clone(f.Failures)
	for _, v := range f.Report.Violations {
		lines = append(lines, v.Error())
	}
	if more := f.Report.Summary.Violations - len(f.Report.Violations); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", plural(more, "violation")))
	}
	for _, line := range f.Report.Meta.Requirements.Missing(&f.Report.Summary) {
		lines = append(lines, "requirement not met: "+line)
	}
	return append(lines, fmt.Sprintf("seed %d", f.Report.Meta.Seed))
}

func mutantVerdict(t mutants.MutantResult) runner.Verdict {
	switch {
	case t.Killed():
		return runner.Pass
	case len(t.MissedBy) > 0:
		return runner.Fail
	}
	return runner.Skip
}

// A labelledCount is a count and its label.
type labelledCount struct {
	Count int
	Label string
}

func mutantFigures(r *mutants.Result) []labelledCount {
	killed, survived, left := r.Counts()
	noticed := 0
	for _, t := range r.Trials {
		noticed += len(t.DetectedBy)
	}
	return []labelledCount{
		{len(r.Trials), "mutants"},
		{killed, "killed"},
		{survived, "survived"},
		{left, "run only by go test"},
		{noticed, "detections by a case"},
	}
}

func robustnessFigures(f *robustness.Result) []labelledCount {
	s := f.Report.Summary
	return []labelledCount{
		{s.Violations, "violations"},
		{s.Events, "events checked"},
		{s.Writes, "writes"},
		{s.Watchers, "watchers"},
		{s.Connections, "connections"},
		{s.Bookmarks, "bookmarks"},
		{s.Snapshots, "snapshots"},
		{s.Lists, "lists"},
		{s.Resumes, "resumes"},
		{s.Expired, "sessions expired"},
		{s.Relists, "relists"},
	}
}

// A faultRow contains the number of faults of one kind and the number of connections that these
// faults ended.
type faultRow struct {
	Kind            string
	Injected, Ended int
}

func faultRows(f *robustness.Result) (rows []faultRow) {
	s := f.Report.Summary
	for kind, n := range s.Faults {
		rows = append(rows, faultRow{kind, n, s.ConnectionsEndedByFault[kind]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.ConnectionsEndedByFault)) {
		if s.Faults[kind] == 0 {
			rows = append(rows, faultRow{kind, 0, s.ConnectionsEndedByFault[kind]})
		}
	}
	slices.SortFunc(rows, func(a, b faultRow) int { return cmp.Compare(a.Kind, b.Kind) })
	return rows
}

func joinFigures(all []labelledCount) string {
	var parts []string
	for _, f := range all {
		parts = append(parts, fmt.Sprintf("%d %s", f.Count, f.Label))
	}
	return strings.Join(parts, ", ")
}

// writeSelfTestFigures writes the figures of the self test.
func writeSelfTestFigures(out io.Writer, r *conformance.Report) {
	if m := r.Mutants; m != nil {
		fmt.Fprintf(out, "%s; %.1f s\n", joinFigures(mutantFigures(m)), m.Seconds)
	}
	if f := r.Robustness; f != nil {
		fmt.Fprintf(out, "under faults: %s; %.1f s\n", joinFigures(robustnessFigures(f)), f.Seconds)
		fmt.Fprintf(out, "\n%-12s%10s%19s\n", "fault", "injected", "ended connections")
		for _, row := range faultRows(f) {
			fmt.Fprintf(out, "%-12s%10d%19d\n", row.Kind, row.Injected, row.Ended)
		}
	}
	if r.Mutants != nil || r.Robustness != nil {
		fmt.Fprintln(out)
	}
}

func writeSelfTestFindings(out io.Writer, r *conformance.Report) {
	for _, f := range selfTestFindings(r) {
		fmt.Fprintf(out, "%-5s %s\n      %s\n\n", verdictLabel(runner.Fail), f.Name, f.Rule)
		for _, m := range f.Messages {
			writeBlock(out, "      ", m)
		}
		fmt.Fprintln(out)
	}
}

// selfTestSummary returns the part of the headline about the self test. It is empty if there was no
// self test.
func selfTestSummary(r *conformance.Report) string {
	line := ""
	if m := r.Mutants; m != nil {
		killed, _, left := m.Counts()
		line += fmt.Sprintf("; %d of %d mutants killed", killed, len(m.Trials))
		if left > 0 {
			line += fmt.Sprintf(", %d run only by go test", left)
		}
	}
	if f := r.Robustness; f != nil {
		s := f.Report.Summary
		line += fmt.Sprintf("; under faults %s of %s", plural(s.Violations, "violation"), plural(s.Events, "event"))
	}
	return line
}
