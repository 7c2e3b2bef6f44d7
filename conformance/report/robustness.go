package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// robustnessRule is the rule that the robustness test checks.
const robustnessRule = "under faults every watcher must see every write exactly once and in order"

// robustnessProblems returns the problems that the robustness test found. It returns nil if the
// test passed or was not run.
func robustnessProblems(r *conformance.Report) []string {
	if f := r.Robustness; f != nil && !f.OK() {
		return robustnessMessages(f)
	}
	return nil
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

// A labelledCount is a count and its label.
type labelledCount struct {
	Count int
	Label string
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

// writeRobustness writes the problems and the figures of the robustness test.
func writeRobustness(out io.Writer, r *conformance.Report) {
	f := r.Robustness
	if f == nil {
		return
	}
	if problems := robustnessProblems(r); problems != nil {
		fmt.Fprintf(out, "%-5s faults\n      %s\n\n", verdictLabel(runner.Fail), robustnessRule)
		for _, m := range problems {
			writeBlock(out, "      ", m)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "under faults: %s; %.1f s\n", joinFigures(robustnessFigures(f)), f.Seconds)
	fmt.Fprintf(out, "\n%-12s%10s%19s\n", "fault", "injected", "ended connections")
	for _, row := range faultRows(f) {
		fmt.Fprintf(out, "%-12s%10d%19d\n", row.Kind, row.Injected, row.Ended)
	}
	fmt.Fprintln(out)
}

// robustnessSummary returns the part of the headline about the robustness test. It is empty if
// the test was not run.
func robustnessSummary(r *conformance.Report) string {
	if r.Robustness == nil {
		return ""
	}
	s := r.Robustness.Report.Summary
	return fmt.Sprintf("; under faults %s of %s", plural(s.Violations, "violation"), plural(s.Events, "event"))
}
