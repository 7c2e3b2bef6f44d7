package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/conformance/mutants"
	"github.com/listwatch/listwatch/conformance/robustness"
)

// faultGroup and mutantGroup are what the names of trials begin with, as those of runs do with a group.
const (
	faultGroup  = "faults"
	mutantGroup = "mutants"
)

// A trialFinding is something wrong with what a run of the suite on itself tried.
type trialFinding struct {
	Name, Says string
	Messages   []string
}

// trialFindings returns the mutants that survived, and what was broken under faults.
func trialFindings(r *conformance.Report) (all []trialFinding) {
	if r.Mutants != nil {
		for _, t := range r.Mutants.Trials {
			if trialVerdict(t) == cases.Fail {
				all = append(all, trialFinding{
					mutantGroup + "/" + t.Name, "a server or client with this defect is failed by the cases about it",
					[]string{"these pass it: " + strings.Join(t.MissedBy, ", ")},
				})
			}
		}
	}
	if f := r.Robustness; f != nil && !f.OK() {
		all = append(all, trialFinding{faultGroup, "under faults every watcher sees every write exactly, in order and once", wrongUnderFaults(f)})
	}
	return all
}

func trialNames(r *conformance.Report) (names []string) {
	for _, f := range trialFindings(r) {
		names = append(names, f.Name)
	}
	return names
}

func wrongUnderFaults(f *robustness.Result) []string {
	lines := slices.Clone(f.Failures)
	for _, v := range f.Report.Violations {
		lines = append(lines, v.Error())
	}
	if more := f.Report.Summary.Violations - len(f.Report.Violations); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", plural(more, "violation")))
	}
	for _, line := range f.Report.Meta.Requirements.Missing(&f.Report.Summary) {
		lines = append(lines, "it was too easy to prove anything: "+line)
	}
	return append(lines, fmt.Sprintf("seed %d", f.Report.Meta.Seed))
}

func trialVerdict(t mutants.MutantResult) cases.Verdict {
	switch {
	case t.Killed():
		return cases.Pass
	case len(t.MissedBy) > 0:
		return cases.Fail
	}
	return cases.Skip
}

// A figure is a number that a run came to, and what it counts.
type figure struct {
	Count int
	What  string
}

// mutantFigures are what there is to say of mutants.
func mutantFigures(r *mutants.Result) []figure {
	killed, survived, left := r.Counts()
	noticed := 0
	for _, t := range r.Trials {
		noticed += len(t.DetectedBy)
	}
	return []figure{
		{len(r.Trials), "mutants"},
		{killed, "killed"},
		{survived, "survived"},
		{left, "left to go test"},
		{noticed, "times a case noticed"},
	}
}

// faultFigures are what was checked under faults.
func faultFigures(f *robustness.Result) []figure {
	s := f.Report.Summary
	return []figure{
		{s.Violations, "violations"},
		{s.Events, "events checked"},
		{s.Writes, "writes"},
		{s.Watchers, "watchers"},
		{s.Connections, "streams"},
		{s.Bookmarks, "bookmarks"},
		{s.Snapshots, "snapshots"},
		{s.Lists, "lists"},
		{s.Resumes, "resumes"},
		{s.Expired, "told that history is gone"},
		{s.Relists, "states got anew"},
	}
}

// A faultRow is how often a kind of fault bit, and how many streams it ended.
type faultRow struct {
	Kind       string
	Bit, Ended int
}

func faultRows(f *robustness.Result) (rows []faultRow) {
	s := f.Report.Summary
	for kind, n := range s.Faults {
		rows = append(rows, faultRow{kind, n, s.EndedByFault[kind]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.EndedByFault)) {
		if s.Faults[kind] == 0 {
			rows = append(rows, faultRow{kind, 0, s.EndedByFault[kind]})
		}
	}
	slices.SortFunc(rows, func(a, b faultRow) int { return cmp.Compare(a.Kind, b.Kind) })
	return rows
}

func joinFigures(all []figure) string {
	var parts []string
	for _, f := range all {
		parts = append(parts, fmt.Sprintf("%d %s", f.Count, f.What))
	}
	return strings.Join(parts, ", ")
}

// writeTried writes the figures of what a run tried on itself.
func writeTried(out io.Writer, r *conformance.Report) {
	if m := r.Mutants; m != nil {
		fmt.Fprintf(out, "%s; %.1f s\n", joinFigures(mutantFigures(m)), m.Seconds)
	}
	if f := r.Robustness; f != nil {
		fmt.Fprintf(out, "under faults: %s; %.1f s\n", joinFigures(faultFigures(f)), f.Seconds)
		fmt.Fprintf(out, "\n%-12s%6s%16s\n", "fault", "bit", "ended streams")
		for _, row := range faultRows(f) {
			fmt.Fprintf(out, "%-12s%6d%16d\n", row.Kind, row.Bit, row.Ended)
		}
	}
	if r.Mutants != nil || r.Robustness != nil {
		fmt.Fprintln(out)
	}
}

func writeTrialFindings(out io.Writer, r *conformance.Report) {
	for _, f := range trialFindings(r) {
		fmt.Fprintf(out, "%-5s %s\n      %s\n\n", head(cases.Fail), f.Name, f.Says)
		for _, m := range f.Messages {
			writeBlock(out, "      ", m)
		}
		fmt.Fprintln(out)
	}
}

// triedLine adds to the last line of a report what was tried; empty: nothing was.
func triedLine(r *conformance.Report) string {
	line := ""
	if m := r.Mutants; m != nil {
		killed, _, left := m.Counts()
		line += fmt.Sprintf("; %d of %d mutants killed", killed, len(m.Trials))
		if left > 0 {
			line += fmt.Sprintf(" and %d left", left)
		}
	}
	if f := r.Robustness; f != nil {
		s := f.Report.Summary
		line += fmt.Sprintf("; under faults %s of %s", plural(s.Violations, "violation"), plural(s.Events, "event"))
	}
	return line
}
