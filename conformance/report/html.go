package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
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

// HTML writes r as one page that needs nothing else: figures, what is wrong, and a map of all cases over all ways, in which a click on a field shows
// what happened there. It follows the colour scheme of the browser, and can be read without scripts.
func HTML(w io.Writer, r *conformance.Report) error { return page.Execute(w, newView(r)) }

// A view is what the page shows.
type view struct {
	Style  template.CSS
	Script template.JS

	Target, Headline, State string
	Tiles                   []tile
	Findings                []findingView
	Trials                  []trialFinding
	tried
	Unmatched []string
	heatMap
	Verdicts []cases.Verdict
	Levels   []figureRow
	Skipped  []SkipReason
	foot
	Runs []runView
}

// tried is what a run tried on itself; empty where it did not.
type tried struct {
	MutantFigures, FaultFigures []figure
	Faults                      []faultRow
	LeftMutants                 []string
}

func newTried(r *conformance.Report) (t tried) {
	if m := r.Mutants; m != nil {
		t.MutantFigures = mutantFigures(m)
		for _, trial := range m.Trials {
			if trialVerdict(trial) == cases.Skip {
				t.LeftMutants = append(t.LeftMutants, trial.Name)
			}
		}
	}
	if f := r.Robustness; f != nil {
		t.FaultFigures, t.Faults = faultFigures(f), faultRows(f)
	}
	return t
}

type foot struct {
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

// A lineView is a line of a timeline; Hit: a message is about it.
type lineView struct {
	Text string
	Hit  bool
}

// A runView is what a click shows.
type runView struct {
	Name     string        `json:"name"`
	Verdict  cases.Verdict `json:"verdict"`
	Word     string        `json:"word"`
	Level    string        `json:"level"`
	Says     string        `json:"says"`
	Messages []string      `json:"messages,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Log      []string      `json:"log,omitempty"`
	Timeline []string      `json:"timeline,omitempty"`
	Seconds  float64       `json:"seconds,omitempty"`
	Again    string        `json:"again,omitempty"`
}

// openFindings is how many are open from the start: enough to see what is wrong, few enough to find the map.
const openFindings = 5

func newView(r *conformance.Report) view {
	s := Summarize(r)
	v := view{
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), // they are our own
		Target: r.Target, Headline: strings.TrimPrefix(Headline(r), r.Target+": "), State: state(r, s),
		Tiles: tiles(r, s), Unmatched: r.UnmatchedPatterns, heatMap: newHeatMap(r, s),
		Skipped: s.Skipped, Trials: trialFindings(r), tried: newTried(r),
		foot: foot{
			Notes: r.Notes, Tool: r.Tool, Started: r.Started.Format("2006-01-02T15:04:05Z"),
			StartedText: r.Started.Format("2 January 2006, 15:04 UTC"), Command: strings.TrimSuffix(again(r, ""), " --run ''"),
		},
	}
	for i, f := range Findings(r) {
		f.Timeline = slices.DeleteFunc(slices.Clone(f.Timeline), func(line string) bool { return line == "" })
		view := findingView{Finding: f, Level: f.Level.Name(), Open: i < openFindings}
		for i, hit := range concerned(f.Messages, f.Timeline) {
			view.Lines = append(view.Lines, lineView{f.Timeline[i], hit})
		}
		v.Findings = append(v.Findings, view)
	}
	v.Verdicts, v.Levels = s.figures()
	for _, o := range r.Outcomes {
		v.Runs = append(v.Runs, runView{
			o.Name(), o.Verdict, words[o.Verdict], o.Level.Name(), o.Says, o.Messages, o.Reason, o.Log, o.Timeline, o.Seconds, again(r, o.Name()),
		})
	}
	return v
}

// state is the colour of the lamp.
func state(r *conformance.Report, s Summary) string {
	switch {
	case !r.OK():
		return "bad"
	case s.RunsByVerdict[cases.Warn] > 0:
		return "mixed"
	case s.RunsByVerdict[cases.Pass] == 0:
		return ""
	}
	return "ok"
}

func tiles(r *conformance.Report, s Summary) []tile {
	all := []tile{
		{fmt.Sprint(s.Cases), "cases", ""},
		{fmt.Sprint(s.Runs), "runs over all ways", ""},
		{fmt.Sprint(s.RunsByVerdict[cases.Pass]), "runs passed", "pass"},
	}
	for _, v := range []cases.Verdict{cases.Fail, cases.XPass, cases.SetupError, cases.Warn, cases.XFail, cases.NotRun} {
		if n := s.RunsByVerdict[v]; n > 0 || v == cases.Fail {
			class := ""
			if n > 0 && v.IsFailure() {
				class = "fail"
			} else if n > 0 {
				class = string(v)
			}
			all = append(all, tile{fmt.Sprint(n), map[cases.Verdict]string{
				cases.Fail: "failed", cases.XPass: "passed unexpectedly", cases.SetupError: "could not begin", cases.Warn: "warnings",
				cases.XFail: "known failures", cases.NotRun: "not run",
			}[v], class})
		}
	}
	all = append(all, tile{fmt.Sprint(s.ByVerdict[cases.Skip]), "cases skipped", ""})
	if m := r.Mutants; m != nil {
		killed, survived, _ := m.Counts()
		all = append(all, tile{fmt.Sprintf("%d/%d", killed, len(m.Trials)), "mutants killed", good(survived == 0)})
	}
	if f := r.Robustness; f != nil {
		n := f.Report.Summary
		all = append(all, tile{fmt.Sprint(n.Events), "events checked under faults", ""}, tile{fmt.Sprint(n.Violations), "violations", good(f.OK())})
	}
	return append(all, tile{fmt.Sprintf("%.1f s", r.Seconds), "in all", ""})
}

// good is the class of a figure that is as it must be.
func good(ok bool) string {
	if ok {
		return "pass"
	}
	return "fail"
}
