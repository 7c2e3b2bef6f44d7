package report

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/mutants"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A Progress shows a run in progress. On a terminal it writes a line for each group, with one sign
// per outcome. Elsewhere it writes a line for each case. It is safe for concurrent use.
type Progress struct {
	// Immutable after construction.
	out   io.Writer
	width int // the width of the terminal; 0 if out is not a terminal
	color bool

	mu sync.Mutex
	// Guarded by mu.
	group   string
	strip   []runner.Verdict
	current []conformance.Outcome // the outcomes of the current case
}

// NewProgress returns a Progress that writes to out. If width is more than 20, out must be
// a terminal of that width that supports ANSI escape sequences. Otherwise out is not
// treated as a terminal. On a terminal, color enables colors.
func NewProgress(out io.Writer, width int, color bool) *Progress {
	if width <= 20 {
		width, color = 0, false
	}
	return &Progress{out: out, width: width, color: color}
}

// Add shows an outcome.
func (p *Progress) Add(o conformance.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width == 0 {
		if len(p.current) > 0 && p.current[0].ID != o.ID {
			p.writeCase()
		}
		p.current = append(p.current, o)
		return
	}
	if group, _, _ := strings.Cut(o.ID, "/"); group != p.group {
		p.endStrip()
		p.group, p.strip = group, nil
	}
	p.strip = append(p.strip, o.Verdict)
	fmt.Fprint(p.out, "\r\x1b[K"+p.stripLine())
}

// AddMutant shows the result of a mutant: a sign on a terminal, otherwise a line if the
// mutant survived.
func (p *Progress) AddMutant(t mutants.MutantResult) {
	if v := mutantVerdict(t); p.width > 0 || v == runner.Fail {
		p.Add(conformance.Outcome{ID: mutantGroup + "/" + t.Name, Verdict: v})
	}
}

// Message shows a line about a long step.
func (p *Progress) Message(what, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	fmt.Fprintf(p.out, "%-12s %s\n", what, line)
}

// Close writes the pending output.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	fmt.Fprintln(p.out)
}

// endLine ends the current line.
func (p *Progress) endLine() {
	p.endStrip()
	if len(p.current) > 0 {
		p.writeCase()
	}
	p.group = ""
}

func (p *Progress) endStrip() {
	if p.group != "" && p.width > 0 {
		fmt.Fprintln(p.out)
	}
}

// progressSigns are one-character signs of verdicts. The signs of failures are capital letters,
// so that they stand out without color.
var progressSigns = map[runner.Verdict]string{
	runner.Pass: ".", runner.Fail: "F", runner.Warn: "w", runner.Info: "i", runner.Skip: "s", runner.XFail: "x", runner.XPass: "X",
	runner.SetupError: "E", runner.NotRun: "-",
}

// ansiColors are the ANSI color codes of verdicts.
var ansiColors = map[runner.Verdict]string{
	runner.Pass: "32", runner.Fail: "1;31", runner.Warn: "33", runner.Info: "36", runner.Skip: "2", runner.XFail: "35", runner.XPass: "1;31",
	runner.SetupError: "1;31", runner.NotRun: "2",
}

// stripLine returns the line of the current group: a sign for each outcome, and counts. If the
// terminal is too narrow for all signs, it shows the latest ones.
func (p *Progress) stripLine() string {
	counts, bad := map[runner.Verdict]int{}, 0
	for _, v := range p.strip {
		counts[v]++
		if isBad(v) {
			bad++
		}
	}
	end := fmt.Sprintf("  %d passed", counts[runner.Pass])
	if bad > 0 {
		end += fmt.Sprintf(", %d not", bad)
	}
	name := fmt.Sprintf("%-12s ", p.group)
	room := p.width - len(name) - len(end) - 1
	strip := p.strip
	if len(strip) > room {
		name, strip = name[:len(name)-1]+"…", strip[len(strip)-max(room, 0):]
	}
	var b strings.Builder
	b.WriteString(name)
	for _, v := range strip {
		b.WriteString(p.colorize(v, progressSigns[v]))
	}
	return b.String() + end
}

func (p *Progress) colorize(v runner.Verdict, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + ansiColors[v] + "m" + text + "\x1b[0m"
}

// writeCase writes the line of the current case: its worst verdict, and the variants with
// that verdict unless all have it.
func (p *Progress) writeCase() {
	worst := p.current[0]
	seconds := 0.0
	var variants, all []string
	for _, o := range p.current {
		if rank(o.Verdict) < rank(worst.Verdict) {
			worst = o
		}
		seconds += o.Seconds
	}
	for _, o := range p.current {
		all = append(all, o.Variant)
		if o.Verdict == worst.Verdict {
			variants = append(variants, o.Variant)
		}
	}
	p.current = nil
	about := fmt.Sprintf("%s, %.0f ms", summarizeVariants(variants, all), seconds*1000)
	switch {
	case worst.Verdict == runner.Skip || worst.Verdict == runner.NotRun || worst.Verdict == runner.XFail:
		about = worst.Reason
	case len(variants) < len(all):
		about = fmt.Sprintf("%s of %d variants, %.0f ms", summarizeVariants(variants, all), len(all), seconds*1000)
	}
	fmt.Fprintf(p.out, "%-5s %-36s %s\n", verdictLabel(worst.Verdict), worst.ID, about)
}
