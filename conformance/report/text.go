package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// maxShownLines limits the lines of a timeline in text and JUnit. JSON and HTML contain
// all lines.
const maxShownLines = 20

// Text writes r as text: findings, known failures, skipped cases and figures.
func Text(w io.Writer, r *conformance.Report) error {
	out := bufio.NewWriter(w)
	for _, f := range Findings(r) {
		writeFinding(out, f)
	}
	writeExpected(out, r)
	for _, p := range r.UnmatchedPatterns {
		fmt.Fprintf(out,
			"FAIL  the known failure %q matches no run: remove it if it is fixed, or correct the pattern\n\n", p)
	}
	s := Summarize(r)
	writeSkipped(out, s)
	writeFigures(out, r, s)
	return out.Flush()
}

// verdictLabels are the labels of verdicts at the start of a line.
var verdictLabels = map[runner.Verdict]string{
	runner.Fail: "FAIL", runner.Warn: "WARN", runner.XPass: "XPASS", runner.SetupError: "SETUP",
}

func verdictLabel(v runner.Verdict) string { return cmp.Or(verdictLabels[v], string(v)) }

func writeFinding(out io.Writer, f Finding) {
	fmt.Fprintf(out, "%-5s %s\n", verdictLabel(f.Verdict), f.Location)
	fmt.Fprintf(out, "      %s: %s\n\n", f.Strength.String(), f.Rule)
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
		fmt.Fprintf(out, "\n      timeline over %s:\n", cmp.Or(f.Variant, "all"))
		if lost > 0 {
			fmt.Fprintf(out, "        (%d earlier lines omitted)\n", lost)
		}
		marked := highlightedLines(f.Messages, shown)
		for i, line := range shown {
			fmt.Fprintf(out, "    %s %s\n", lineMark(marked[i]), line)
		}
	}
	if f.RerunCommand != "" {
		fmt.Fprintf(out, "\n      run again: %s\n", f.RerunCommand)
	}
	fmt.Fprintln(out)
}

// lineMark returns ">" for a highlighted line, and a space for any other line.
func lineMark(yes bool) string {
	if yes {
		return ">"
	}
	return " "
}

// writeBlock writes text with a prefix, and indents its further lines by the same width.
func writeBlock(out io.Writer, prefix, text string) {
	indent := strings.Repeat(" ", len(prefix))
	fmt.Fprintf(out, "%s%s\n", prefix, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent))
}

// lastLines returns the end of a timeline and the number of omitted lines. If the timeline is too
// long, it also omits the lines about connections that the client closed, because a case with many
// watches closes all of them at its end.
func lastLines(timeline []string) (shown []string, lost int) {
	for len(timeline) > 0 && timeline[0] == "" {
		timeline = timeline[1:]
	}
	shown = timeline
	if len(shown) > maxShownLines {
		shown = slices.DeleteFunc(slices.Clone(shown), isClosedByClient)
	}
	shown = shown[max(0, len(shown)-maxShownLines):]
	return shown, len(timeline) - len(shown)
}

func isClosedByClient(line string) bool { return strings.HasSuffix(line, " closed by the client") }

func writeExpected(out io.Writer, r *conformance.Report) {
	n := 0
	for _, o := range r.Outcomes {
		if o.Verdict == runner.XFail {
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

// writeFigures writes the table of cases by strength and verdict, and the headline.
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
	writeLevels(out, r)
	writeRobustness(out, r)
	for _, n := range r.Notes {
		fmt.Fprintf(out, "Note: %s.\n", strings.TrimSuffix(n, "."))
	}
	fmt.Fprintln(out, Headline(r))
}

// Headline summarizes a run in one line.
func Headline(r *conformance.Report) string {
	s := Summarize(r)
	verdict := "all rules that could be tested hold"
	switch bad := s.RunsByVerdict[runner.Fail] + s.RunsByVerdict[runner.XPass] + s.RunsByVerdict[runner.SetupError]; {
	case r.Unfinished != "" && r.Left > 0:
		verdict = fmt.Sprintf("NOT FINISHED: %s; %s left", r.Unfinished, plural(r.Left, "case"))
	case r.Unfinished != "":
		verdict = "NOT FINISHED: " + r.Unfinished
	case r.SetupFailed():
		verdict = "SETUP FAILED: no case could start"
	case bad > 0:
		verdict = fmt.Sprintf("FAILED: %s did not pass", plural(bad, "run"))
	case len(r.UnmatchedPatterns) > 0:
		verdict = "FAILED: some known failures match no run"
	case r.Levels != nil && len(r.Levels.Missing) > 0:
		n := len(r.Levels.Missing)
		verdict = fmt.Sprintf("FAILED: %s of level %d not tested", plural(n, "must"), r.Levels.Required)
	case robustnessProblems(r) != nil:
		verdict = "FAILED: faults"
	case s.RunsByVerdict[runner.NotRun] > 0:
		verdict = fmt.Sprintf("NOT FINISHED: %s left", plural(s.RunsByVerdict[runner.NotRun], "run"))
	case s.RunsByVerdict[runner.Pass] == 0:
		verdict = "no rule was tested"
	case s.RunsByVerdict[runner.Warn] > 0:
		verdict = "ok: every must that could be tested holds, but some other rules do not"
	default:
		verdict = "ok: " + verdict
	}
	skipped := ""
	if n := s.ByVerdict[runner.Skip]; n > 0 {
		skipped = fmt.Sprintf(" and %d skipped", n)
	}
	level := ""
	if r.Levels != nil {
		level = "; " + levelName(r.Levels)
	}
	return fmt.Sprintf("%s: %s of %s%s in %.1f s: %s%s",
		r.Target, plural(s.Runs, "run"), plural(s.Cases-s.ByVerdict[runner.Skip], "case"), skipped, r.Seconds,
		verdict, robustnessSummary(r)+level)
}
