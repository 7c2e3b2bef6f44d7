package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// Markdown writes r as GitHub Markdown.
func Markdown(w io.Writer, r *conformance.Report) error {
	out := bufio.NewWriter(w)
	s := Summarize(r)
	fmt.Fprintf(out, "# Conformance of %s\n\n%s.\n\n", inline(r.Target), inline(Headline(r)))
	writeMarkdownFigures(out, s)
	writeMarkdownSelfTest(out, r)
	for _, f := range Findings(r) {
		writeMarkdownFinding(out, f)
	}
	for _, f := range selfTestFindings(r) {
		fmt.Fprintf(out, "## FAIL: %s\n\n%s.\n\n", inline(f.Name), inline(f.Rule))
		writeFence(out, strings.Join(f.Messages, "\n"))
	}
	if len(r.UnmatchedPatterns) > 0 {
		fmt.Fprintf(out, "## Known failures that match no run\n\n")
		for _, p := range r.UnmatchedPatterns {
			fmt.Fprintf(out, "- `%s`\n", p)
		}
		fmt.Fprintln(out)
	}
	if s.RunsByVerdict[runner.XFail] > 0 {
		fmt.Fprintf(out, "## Known failures\n\n")
		for _, o := range r.Outcomes {
			if o.Verdict == runner.XFail {
				fmt.Fprintf(out, "- `%s`: %s\n", o.Name(), inline(o.Reason))
			}
		}
		fmt.Fprintln(out)
	}
	if len(s.Skipped) > 0 {
		fmt.Fprintf(out, "<details><summary>Skipped: %s</summary>\n\n", plural(s.ByVerdict[runner.Skip], "case"))
		for _, why := range s.Skipped {
			fmt.Fprintf(out, "- %s: `%s`\n", inline(why.Reason), strings.Join(why.Cases, "`, `"))
		}
		fmt.Fprintf(out, "\n</details>\n\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "- %s\n", inline(n))
	}
	fmt.Fprintf(out, "- %s, %s\n", inline(r.Tool), r.Started.Format("2006-01-02 15:04 UTC"))
	return out.Flush()
}

func writeMarkdownFigures(out io.Writer, s Summary) {
	heads, rows := s.figures()
	head, rule := "| cases |", "|---|"
	for _, v := range heads {
		head += fmt.Sprintf(" %s |", v)
		rule += "--:|"
	}
	fmt.Fprintf(out, "%s\n%s\n", head, rule)
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |", row.Name)
		for _, n := range row.Counts {
			fmt.Fprintf(out, " %d |", n)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
}

func writeMarkdownSelfTest(out io.Writer, r *conformance.Report) {
	if m := r.Mutants; m != nil {
		fmt.Fprintf(out, "**Mutants**: %s.\n\n", joinFigures(mutantFigures(m)))
	}
	f := r.Robustness
	if f == nil {
		return
	}
	fmt.Fprintf(out, "**Under faults**: %s.\n\n| fault | injected | ended connections |\n|---|--:|--:|\n", joinFigures(robustnessFigures(f)))
	for _, row := range faultRows(f) {
		fmt.Fprintf(out, "| %s | %d | %d |\n", inline(row.Kind), row.Injected, row.Ended)
	}
	fmt.Fprintln(out)
}

func writeMarkdownFinding(out io.Writer, f Finding) {
	fmt.Fprintf(out, "## %s: %s\n\n**%s**: %s.\n\n", verdictLabel(f.Verdict), inline(f.Location), f.Level.Name(), inline(f.Rule))
	var text strings.Builder
	for _, m := range f.Messages {
		text.WriteString(m + "\n")
	}
	if f.Reason != "" {
		text.WriteString(f.Reason + "\n")
	}
	for _, line := range f.Log {
		text.WriteString("note: " + line + "\n")
	}
	writeFence(out, text.String())
	if shown, _ := lastLines(f.Timeline); len(shown) > 0 {
		fmt.Fprintf(out, "<details><summary>Timeline over %s</summary>\n\n", f.Variant)
		lines := slices.Clone(shown)
		for i, yes := range highlightedLines(f.Messages, shown) {
			lines[i] = lineMark(yes) + lines[i]
		}
		writeFence(out, strings.Join(lines, "\n"))
		fmt.Fprintf(out, "</details>\n\n")
	}
	if f.RerunCommand != "" {
		writeFence(out, f.RerunCommand)
	}
}

// writeFence writes text as a code block whose fence is longer than any fence in the text.
func writeFence(out io.Writer, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(out, "%s\n%s\n%s\n\n", fence, strings.TrimRight(text, "\n"), fence)
}

var inlineEscapes = strings.NewReplacer("\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "|", `\|`, "[", `\[`)

// inline escapes text for a line of Markdown.
func inline(text string) string { return inlineEscapes.Replace(text) }
