package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// verdicts are all there are, the worst first: a case that ran in several ways has the worst verdict of them.
var verdicts = []cases.Verdict{
	cases.Fail, cases.XPass, cases.SetupError, cases.Warn, cases.NotRun, cases.XFail, cases.Pass, cases.Info, cases.Skip,
}

// words say what a verdict means.
var words = map[cases.Verdict]string{
	cases.Pass: "the rule holds", cases.Fail: "a must is broken", cases.Warn: "a rule that is no must is broken",
	cases.Info: "measured, not judged", cases.Skip: "can't be run here", cases.XFail: "fails, as is known",
	cases.XPass: "is listed as a known failure, and passes", cases.SetupError: "the target did not get as far as the case",
	cases.NotRun: "the run ended before",
}

var levels = []cases.Level{cases.Must, cases.Should, cases.Promise, cases.Measurement}

// A Summary is what a run comes to in figures.
type Summary struct {
	// Cases counts cases, Runs what came to a verdict of them: a case in one way.
	Cases, Runs int
	// ByLevel counts cases by their level and worst verdict, ByVerdict over all levels, RunsByVerdict every outcome.
	ByLevel                  map[cases.Level]map[cases.Verdict]int
	ByVerdict, RunsByVerdict map[cases.Verdict]int
	// Skipped counts, for each reason, the cases that were skipped for it in every way, the commonest reason first.
	Skipped []SkipReason
}

// A Reason is why cases were skipped.
type SkipReason struct {
	Reason string
	Cases  []string // ids
}

// Summarize counts r.
func Summarize(r *conformance.Report) Summary {
	s := Summary{
		ByLevel: map[cases.Level]map[cases.Verdict]int{}, ByVerdict: map[cases.Verdict]int{}, RunsByVerdict: map[cases.Verdict]int{},
	}
	reasons := map[string][]string{}
	for _, c := range byCase(r) {
		worst := c[0]
		for _, o := range c {
			s.RunsByVerdict[o.Verdict]++
			if o.Way != "" && o.Verdict != cases.NotRun && o.Verdict != cases.Skip {
				s.Runs++
			}
			if rank(o.Verdict) < rank(worst.Verdict) {
				worst = o
			}
		}
		s.Cases++
		if s.ByLevel[worst.Level] == nil {
			s.ByLevel[worst.Level] = map[cases.Verdict]int{}
		}
		s.ByLevel[worst.Level][worst.Verdict]++
		s.ByVerdict[worst.Verdict]++
		if worst.Verdict == cases.Skip {
			reasons[worst.Reason] = append(reasons[worst.Reason], worst.ID)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		s.Skipped = append(s.Skipped, SkipReason{why, reasons[why]})
	}
	slices.SortStableFunc(s.Skipped, func(a, b SkipReason) int { return cmp.Compare(len(b.Cases), len(a.Cases)) })
	return s
}

func rank(v cases.Verdict) int {
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

// present are the verdicts that occur among counts, the worst first.
func present(counts map[cases.Verdict]int) []cases.Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v cases.Verdict) bool { return counts[v] == 0 })
}

// A figureRow is how many cases of a level have each of the verdicts that occur, the worst first.
type figureRow struct {
	Name   string
	Counts []int
}

// figures returns the verdicts that occur, a row for each level that does, and one for all.
func (s Summary) figures() (heads []cases.Verdict, rows []figureRow) {
	heads = present(s.ByVerdict)
	add := func(name string, counts map[cases.Verdict]int) {
		row := figureRow{Name: name}
		for _, v := range heads {
			row.Counts = append(row.Counts, counts[v])
		}
		rows = append(rows, row)
	}
	for _, l := range levels {
		if s.ByLevel[l] != nil {
			add(l.Name(), s.ByLevel[l])
		}
	}
	add("all", s.ByVerdict)
	return heads, rows
}
