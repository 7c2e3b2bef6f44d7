package report

import (
	_ "embed" // for go:embed
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

var page = template.Must(template.New("page").Parse(pageHTML))

// HTML writes r as a self-contained page with figures, findings, and a table of all cases
// and variants. Clicking a cell of the table shows its details. The page follows the
// browser's color scheme and is readable without scripts.
func HTML(w io.Writer, r *conformance.Report) error { return page.Execute(w, newView(r)) }

// A view is the data of the page.
type view struct {
	Style  template.CSS
	Script template.JS

	Target, Headline, State string
	Tiles                   []tile
	Findings                []findingView
	SelfTests               []selfTestFinding
	selfTestView
	UnmatchedPatterns []string
	heatMap
	Verdicts []runner.Verdict
	Levels   []figureRow
	Skipped  []SkipReason
	footer
	Runs []runView
}

// A selfTestView shows the tests of the suite itself. It is empty if they did not run.
type selfTestView struct {
	MutantFigures, FaultFigures []labelledCount
	Faults                      []faultRow
	SkippedMutants              []string
}

func newSelfTestView(r *conformance.Report) (t selfTestView) {
	if m := r.Mutants; m != nil {
		t.MutantFigures = mutantFigures(m)
		for _, trial := range m.Trials {
			if mutantVerdict(trial) == runner.Skip {
				t.SkippedMutants = append(t.SkippedMutants, trial.Name)
			}
		}
	}
	if f := r.Robustness; f != nil {
		t.FaultFigures, t.Faults = robustnessFigures(f), faultRows(f)
	}
	return t
}

type footer struct {
	Notes                               []string
	Tool, Started, StartedText, Command string
}

type tile struct{ Figure, Label, Class string }

type findingView struct {
	Finding
	Level string
	Open  bool
	Lines []lineView
}

// A lineView is a line of a timeline.
type lineView struct {
	Text        string
	Highlighted bool
}

// A runView contains the details of a run, which the page shows when the reader clicks a cell.
type runView struct {
	Name     string         `json:"name"`
	Verdict  runner.Verdict `json:"verdict"`
	Meaning  string         `json:"meaning"`
	Level    string         `json:"level"`
	Rule     string         `json:"rule"`
	Messages []string       `json:"messages,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Log      []string       `json:"log,omitempty"`
	Timeline []string       `json:"timeline,omitempty"`
	Seconds  float64        `json:"seconds,omitempty"`
	Rerun    string         `json:"rerun,omitempty"`
}

// openFindings is the number of findings that are initially expanded.
const openFindings = 5

func newView(r *conformance.Report) view {
	s := Summarize(r)
	v := view{
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), // trusted: embedded files
		Target: r.Target, Headline: strings.TrimPrefix(Headline(r), r.Target+": "), State: overallState(r, s),
		Tiles: tiles(r, s), UnmatchedPatterns: r.UnmatchedPatterns, heatMap: newHeatMap(r, s),
		Skipped: s.Skipped, SelfTests: selfTestFindings(r), selfTestView: newSelfTestView(r),
		footer: footer{
			Notes: r.Notes, Tool: r.Tool, Started: r.Started.Format("2006-01-02T15:04:05Z"),
			StartedText: r.Started.Format("2 January 2006, 15:04 UTC"), Command: strings.TrimSuffix(rerunCommand(r, ""), " --run ''"),
		},
	}
	for i, f := range Findings(r) {
		f.Timeline = slices.DeleteFunc(slices.Clone(f.Timeline), func(line string) bool { return line == "" })
		view := findingView{Finding: f, Level: f.Level.Name(), Open: i < openFindings}
		for i, hit := range highlightedLines(f.Messages, f.Timeline) {
			view.Lines = append(view.Lines, lineView{f.Timeline[i], hit})
		}
		v.Findings = append(v.Findings, view)
	}
	v.Verdicts, v.Levels = s.figures()
	for _, o := range r.Outcomes {
		v.Runs = append(v.Runs, runView{
			o.Name(), o.Verdict, verdictMeanings[o.Verdict], o.Level.Name(), o.Rule, o.Messages, o.Reason, o.Log, o.Timeline, o.Seconds, rerunCommand(r, o.Name()),
		})
	}
	return v
}

// overallState returns the CSS class of the status lamp.
func overallState(r *conformance.Report, s Summary) string {
	switch {
	case !r.OK():
		return "bad"
	case s.RunsByVerdict[runner.Warn] > 0:
		return "mixed"
	case s.RunsByVerdict[runner.Pass] == 0:
		return ""
	}
	return "ok"
}

func tiles(r *conformance.Report, s Summary) []tile {
	all := []tile{
		{fmt.Sprint(s.Cases), "cases", ""},
		{fmt.Sprint(s.Runs), "runs in all variants", ""},
		{fmt.Sprint(s.RunsByVerdict[runner.Pass]), "runs passed", "pass"},
	}
	for _, v := range []runner.Verdict{runner.Fail, runner.XPass, runner.SetupError, runner.Warn, runner.XFail, runner.NotRun} {
		if n := s.RunsByVerdict[v]; n > 0 || v == runner.Fail {
			class := ""
			if n > 0 && v.IsFailure() {
				class = "fail"
			} else if n > 0 {
				class = string(v)
			}
			all = append(all, tile{fmt.Sprint(n), map[runner.Verdict]string{
				runner.Fail: "failed", runner.XPass: "passed unexpectedly", runner.SetupError: "setup failed", runner.Warn: "warnings",
				runner.XFail: "known failures", runner.NotRun: "not run",
			}[v], class})
		}
	}
	all = append(all, tile{fmt.Sprint(s.ByVerdict[runner.Skip]), "cases skipped", ""})
	if m := r.Mutants; m != nil {
		killed, survived, _ := m.Counts()
		all = append(all, tile{fmt.Sprintf("%d/%d", killed, len(m.Trials)), "mutants killed", figureClass(survived == 0)})
	}
	if f := r.Robustness; f != nil {
		n := f.Report.Summary
		all = append(all, tile{fmt.Sprint(n.Events), "events checked under faults", ""}, tile{fmt.Sprint(n.Violations), "violations", figureClass(f.OK())})
	}
	return append(all, tile{fmt.Sprintf("%.1f s", r.Seconds), "total time", ""})
}

// figureClass returns the CSS class of a figure. ok reports whether the figure is as expected.
func figureClass(ok bool) string {
	if ok {
		return "pass"
	}
	return "fail"
}
