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
)

var page = template.Must(template.New("page").Parse(pageHTML))

// HTML writes r as a self-contained page with figures, findings, and a list of all cases. The page
// follows the browser's color scheme and has no scripts.
func HTML(w io.Writer, r *conformance.Report) error { return page.Execute(w, newView(r)) }

// A view is the data of the page.
type view struct {
	Style                               template.CSS
	Target, Headline, State             string
	Tiles                               []tile
	Findings                            []findingView
	Robustness                          robustnessView
	UnmatchedPatterns                   []string
	Groups                              []groupView
	LevelsTitle                         string
	Levels                              []levelRow
	Strengths                           []figureRow
	Verdicts                            []runner.Verdict // the columns of Strengths
	Skipped                             []SkipReason
	Notes                               []string
	Tool, Started, StartedText, Command string
}

// A robustnessView shows the robustness test. It is empty if the test was not run.
type robustnessView struct {
	Rule     string
	Problems []string
	Figures  []labelledCount
	Faults   []faultRow
}

func newRobustnessView(r *conformance.Report) robustnessView {
	if r.Robustness == nil {
		return robustnessView{}
	}
	return robustnessView{
		robustnessRule, robustnessProblems(r), robustnessFigures(r.Robustness), faultRows(r.Robustness),
	}
}

// A groupView lists the cases of a group.
type groupView struct {
	Name string
	Rows []rowView
}

// A rowView is a case: its worst outcome, and a text about the variants with that verdict.
type rowView struct {
	conformance.Outcome
	StrengthName, About string
}

func groupViews(r *conformance.Report) (all []groupView) {
	for _, c := range byCase(r) {
		name, _, _ := strings.Cut(c[0].ID, "/")
		if n := len(all); n == 0 || all[n-1].Name != name {
			all = append(all, groupView{Name: name})
		}
		worst, about := summarizeCase(c)
		g := &all[len(all)-1]
		g.Rows = append(g.Rows, rowView{worst, worst.Strength.String(), about})
	}
	return all
}

type tile struct{ Figure, Label, Class string }

type findingView struct {
	Finding
	Strength string
	Open     bool
	Lines    []lineView
}

// A lineView is a line of a timeline.
type lineView struct {
	Text        string
	Highlighted bool
}

// openFindings is the number of findings that are initially expanded.
const openFindings = 5

func newView(r *conformance.Report) view {
	s := Summarize(r)
	v := view{
		Style:  template.CSS(pageCSS), // trusted: an embedded file
		Target: r.Target, Headline: strings.TrimPrefix(Headline(r), r.Target+": "), State: overallState(r, s),
		Tiles:             tiles(r, s),
		UnmatchedPatterns: r.UnmatchedPatterns, Groups: groupViews(r),
		Skipped: s.Skipped, Robustness: newRobustnessView(r),
		Notes: r.Notes, Tool: r.Tool, Started: r.Started.Format("2006-01-02T15:04:05Z"),
		StartedText: r.Started.Format("2 January 2006, 15:04 UTC"),
		Command:     strings.TrimSuffix(rerunCommand(r, ""), " --run ''"),
	}
	for i, f := range Findings(r) {
		f.Timeline = slices.DeleteFunc(slices.Clone(f.Timeline), func(line string) bool { return line == "" })
		view := findingView{Finding: f, Strength: f.Strength.String(), Open: i < openFindings}
		for i, hit := range highlightedLines(f.Messages, f.Timeline) {
			view.Lines = append(view.Lines, lineView{f.Timeline[i], hit})
		}
		v.Findings = append(v.Findings, view)
	}
	if v.Levels = levelRows(r); r.Levels != nil {
		v.LevelsTitle = levelsTitle(r.Levels)
	}
	v.Verdicts, v.Strengths = s.figures()
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
	for _, label := range []struct {
		verdict runner.Verdict
		text    string
	}{
		{runner.Fail, "failed"},
		{runner.XPass, "passed unexpectedly"},
		{runner.SetupError, "setup failed"},
		{runner.Warn, "warnings"},
		{runner.XFail, "known failures"},
		{runner.NotRun, "not run"},
	} {
		n, class := s.RunsByVerdict[label.verdict], ""
		switch {
		case n == 0 && label.verdict != runner.Fail:
			continue
		case n > 0 && label.verdict.IsFailure():
			class = "fail"
		case n > 0:
			class = string(label.verdict)
		}
		all = append(all, tile{fmt.Sprint(n), label.text, class})
	}
	all = append(all, tile{fmt.Sprint(s.ByVerdict[runner.Skip]), "cases skipped", ""})
	if f := r.Robustness; f != nil {
		class := "pass"
		if !f.OK() {
			class = "fail"
		}
		n := f.Report.Summary
		all = append(all, tile{fmt.Sprint(n.Events), "events checked under faults", ""},
			tile{fmt.Sprint(n.Violations), "violations", class})
	}
	return append(all, tile{fmt.Sprintf("%.1f s", r.Seconds), "total time", ""})
}
