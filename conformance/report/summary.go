package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// verdicts lists all verdicts, the worst first. A case has the worst verdict of its
// variants.
var verdicts = []runner.Verdict{
	runner.Fail, runner.XPass, runner.SetupError, runner.Warn, runner.NotRun, runner.XFail,
	runner.Pass, runner.Info, runner.Skip,
}

var strengths = []harness.Strength{harness.Must, harness.Should, harness.Promise, harness.Measurement}

// A Summary contains the figures of a report.
type Summary struct {
	// Cases is the number of cases. Runs is the number of runs that were neither skipped nor
	// interrupted; a run is a case in one variant.
	Cases, Runs int
	// ByStrength counts cases by strength and worst verdict. ByVerdict counts the cases of all
	// strengths. RunsByVerdict counts outcomes.
	ByStrength               map[harness.Strength]map[runner.Verdict]int
	ByVerdict, RunsByVerdict map[runner.Verdict]int
	// Skipped lists the cases that were skipped in every variant, by reason. The most
	// frequent reason comes first.
	Skipped []SkipReason
}

// A SkipReason is a reason for skipping cases.
type SkipReason struct {
	Reason string
	Cases  []string // IDs
}

// Summarize counts the outcomes of r.
func Summarize(r *conformance.Report) Summary {
	s := Summary{
		ByStrength: map[harness.Strength]map[runner.Verdict]int{}, ByVerdict: map[runner.Verdict]int{},
		RunsByVerdict: map[runner.Verdict]int{},
	}
	reasons := map[string][]string{}
	for _, c := range byCase(r) {
		worst := c[0]
		for _, o := range c {
			s.RunsByVerdict[o.Verdict]++
			if o.Variant != "" && o.Verdict != runner.NotRun && o.Verdict != runner.Skip {
				s.Runs++
			}
			if rank(o.Verdict) < rank(worst.Verdict) {
				worst = o
			}
		}
		s.Cases++
		if s.ByStrength[worst.Strength] == nil {
			s.ByStrength[worst.Strength] = map[runner.Verdict]int{}
		}
		s.ByStrength[worst.Strength][worst.Verdict]++
		s.ByVerdict[worst.Verdict]++
		if worst.Verdict == runner.Skip {
			reasons[worst.Reason] = append(reasons[worst.Reason], worst.ID)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		s.Skipped = append(s.Skipped, SkipReason{why, reasons[why]})
	}
	slices.SortStableFunc(s.Skipped, func(a, b SkipReason) int { return cmp.Compare(len(b.Cases), len(a.Cases)) })
	return s
}

func rank(v runner.Verdict) int {
	if i := slices.Index(verdicts, v); i >= 0 {
		return i
	}
	return len(verdicts)
}

// byCase returns the outcomes of each case, in the order of the report.
func byCase(r *conformance.Report) (all [][]conformance.Outcome) {
	at := map[string]int{}
	for _, o := range r.Outcomes {
		i, known := at[o.ID]
		if !known {
			i = len(all)
			at[o.ID], all = i, append(all, nil)
		}
		all[i] = append(all[i], o)
	}
	return all
}

// occurring returns the verdicts with a nonzero count, the worst first.
func occurring(counts map[runner.Verdict]int) []runner.Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v runner.Verdict) bool { return counts[v] == 0 })
}

// A figureRow contains the number of cases of a strength, by verdict.
type figureRow struct {
	Name   string
	Counts []int
}

// figures returns the verdicts that occur, a row for each strength that occurs, and a row for all
// strengths together.
func (s Summary) figures() (heads []runner.Verdict, rows []figureRow) {
	heads = occurring(s.ByVerdict)
	add := func(name string, counts map[runner.Verdict]int) {
		row := figureRow{Name: name}
		for _, v := range heads {
			row.Counts = append(row.Counts, counts[v])
		}
		rows = append(rows, row)
	}
	for _, l := range strengths {
		if s.ByStrength[l] != nil {
			add(l.String(), s.ByStrength[l])
		}
	}
	add("all", s.ByVerdict)
	return heads, rows
}
