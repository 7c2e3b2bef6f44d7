package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// shownLines is how much of a timeline is shown where there is no room to open and close it; JSON and HTML have all of it.
const shownLines = 20

// Text writes r for people: what is wrong, what was skipped and why, and figures.
func Text(w io.Writer, r *conformance.Report) error {
	out := bufio.NewWriter(w)
	for _, f := range Findings(r) {
		writeFinding(out, f)
	}
	writeExpected(out, r)
	writeTrialFindings(out, r)
	for _, p := range r.UnmatchedPatterns {
		fmt.Fprintf(out, "FAIL  the known failure %q names no run: is it mended, or misspelt?\n\n", p)
	}
	s := Summarize(r)
	writeSkipped(out, s)
	writeFigures(out, r, s)
	return out.Flush()
}

// heads are how a verdict is told in front of a line.
var heads = map[cases.Verdict]string{cases.Fail: "FAIL", cases.Warn: "WARN", cases.XPass: "XPASS", cases.SetupError: "SETUP"}

func head(v cases.Verdict) string { return cmp.Or(heads[v], string(v)) }

func writeFinding(out io.Writer, f Finding) {
	fmt.Fprintf(out, "%-5s %s\n", head(f.Verdict), f.Location)
	fmt.Fprintf(out, "      %s: %s\n\n", f.Level.Name(), f.Says)
	for _, m := range f.Messages {
		writeBlock(out, "      ", m)
	}
	if f.Reason != "" {
		writeBlock(out, "      ", f.Reason)
	}
	for _, line := range f.Log {
		writeBlock(out, "      note: ", line)
	}
	if shown, lost := lastLines(f.Timeline); len(shown) > 0 {
		fmt.Fprintf(out, "\n      what happened before, over %s:\n", cmp.Or(f.Way, "all"))
		if lost > 0 {
			fmt.Fprintf(out, "        … %d earlier lines\n", lost)
		}
		marked := concerned(f.Messages, shown)
		for i, line := range shown {
			fmt.Fprintf(out, "    %s %s\n", mark(marked[i]), line)
		}
	}
	if f.RerunCommand != "" {
		fmt.Fprintf(out, "\n      again: %s\n", f.RerunCommand)
	}
	fmt.Fprintln(out)
}

// mark is in front of a line that a message is about.
func mark(yes bool) string {
	if yes {
		return ">"
	}
	return " "
}

// writeBlock writes text with prefix before its first line and as much space before the others.
func writeBlock(out io.Writer, prefix, text string) {
	indent := strings.Repeat(" ", len(prefix))
	fmt.Fprintf(out, "%s%s\n", prefix, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent))
}

// lastLines returns the end of a timeline and how many lines come before it.
func lastLines(timeline []string) (shown []string, lost int) {
	for len(timeline) > 0 && timeline[0] == "" {
		timeline = timeline[1:]
	}
	lost = max(0, len(timeline)-shownLines)
	return timeline[lost:], lost
}

func writeExpected(out io.Writer, r *conformance.Report) {
	n := 0
	for _, o := range r.Outcomes {
		if o.Verdict == cases.XFail {
			fmt.Fprintf(out, "xfail %s: %s\n", o.Name(), o.Reason)
			n++
		}
	}
	if n > 0 {
		fmt.Fprintln(out)
	}
}

func writeSkipped(out io.Writer, s Summary) {
	if len(s.Skipped) == 0 {
		return
	}
	fmt.Fprintln(out, "Skipped cases, by reason:")
	for _, why := range s.Skipped {
		fmt.Fprintf(out, "%5d  %s\n", len(why.Cases), why.Reason)
	}
	fmt.Fprintln(out)
}

// writeFigures writes the table of cases by level and verdict, and a last line that says it all.
func writeFigures(out io.Writer, r *conformance.Report, s Summary) {
	heads, rows := s.figures()
	fmt.Fprintf(out, "%-10s", "cases")
	for _, v := range heads {
		fmt.Fprintf(out, "%12s", v)
	}
	fmt.Fprintln(out)
	for _, row := range rows {
		fmt.Fprintf(out, "%-10s", row.Name)
		for _, n := range row.Counts {
			fmt.Fprintf(out, "%12d", n)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	writeTried(out, r)
	for _, n := range r.Notes {
		fmt.Fprintf(out, "Note: %s.\n", strings.TrimSuffix(n, "."))
	}
	fmt.Fprintln(out, Headline(r))
}

// Headline says in one line what a run comes to.
func Headline(r *conformance.Report) string {
	s := Summarize(r)
	verdict := "the rules that could be tested hold"
	switch bad := s.RunsByVerdict[cases.Fail] + s.RunsByVerdict[cases.XPass] + s.RunsByVerdict[cases.SetupError]; {
	case r.SetupFailed():
		verdict = "UNUSABLE: no case could begin"
	case bad > 0:
		verdict = fmt.Sprintf("FAILED: %s did not pass", plural(bad, "run"))
	case len(r.UnmatchedPatterns) > 0:
		verdict = "FAILED: there are known failures that name no run"
	case len(trialFindings(r)) > 0:
		verdict = "FAILED: " + strings.Join(trialNames(r), ", ")
	case s.RunsByVerdict[cases.NotRun] > 0:
		verdict = fmt.Sprintf("NOT FINISHED: %s left", plural(s.RunsByVerdict[cases.NotRun], "run"))
	case r.Unfinished != "":
		verdict = "NOT FINISHED: " + r.Unfinished
	case s.RunsByVerdict[cases.Pass] == 0:
		verdict = "nothing was judged"
	case s.RunsByVerdict[cases.Warn] > 0:
		verdict = "ok: all musts that could be tested hold, and some other rules do not"
	default:
		verdict = "ok: " + verdict
	}
	skipped := ""
	if n := s.ByVerdict[cases.Skip]; n > 0 {
		skipped = fmt.Sprintf(" and %d skipped", n)
	}
	return fmt.Sprintf("%s: %s of %s%s in %.1f s: %s%s",
		r.Target, plural(s.Runs, "run"), plural(s.Cases-s.ByVerdict[cases.Skip], "case"), skipped, r.Seconds, verdict, triedLine(r))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
