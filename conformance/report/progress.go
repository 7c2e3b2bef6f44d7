package report

import (
	"fmt"
	"io"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A Progress shows a run in progress: it writes a line for each case. The zero value is not usable.
type Progress struct {
	out     io.Writer
	current []conformance.Outcome // the outcomes of the current case
}

// NewProgress returns a Progress that writes to out.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Add adds an outcome. Progress writes the line of a case when the first outcome of the next case
// is added.
func (p *Progress) Add(o conformance.Outcome) {
	if len(p.current) > 0 && p.current[0].ID != o.ID {
		p.flush()
	}
	p.current = append(p.current, o)
}

// Message writes a line about a long step.
func (p *Progress) Message(line string) {
	p.flush()
	fmt.Fprintln(p.out, line)
}

// Close writes the line of the last case.
func (p *Progress) Close() {
	p.flush()
	fmt.Fprintln(p.out)
}

func (p *Progress) flush() {
	if len(p.current) > 0 {
		worst, about := summarizeCase(p.current)
		fmt.Fprintf(p.out, "%-5s %-36s %s\n", verdictLabel(worst.Verdict), worst.ID, about)
	}
	p.current = nil
}

// summarizeCase returns the worst outcome of a case, and a text about the variants with that
// verdict.
func summarizeCase(all []conformance.Outcome) (worst conformance.Outcome, about string) {
	worst = all[0]
	seconds := 0.0
	for _, o := range all {
		if rank(o.Verdict) < rank(worst.Verdict) {
			worst = o
		}
		seconds += o.Seconds
	}
	if v := worst.Verdict; v == runner.Skip || v == runner.NotRun || v == runner.XFail {
		return worst, worst.Reason
	}
	var variants, like []string
	for _, o := range all {
		variants = append(variants, o.Variant)
		if o.Verdict == worst.Verdict {
			like = append(like, o.Variant)
		}
	}
	about = summarizeVariants(like, variants)
	if len(like) < len(variants) {
		about += fmt.Sprintf(" of %d variants", len(variants))
	}
	return worst, fmt.Sprintf("%s, %.0f ms", about, seconds*1000)
}
