package report

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/conformance/mutants"
)

// A Progress shows a run while it goes on: on a terminal a strip for each group that grows by a sign for every run, elsewhere a line for each
// case. It is safe for concurrent use.
type Progress struct {
	// Immutable after construction.
	out    io.Writer
	width  int // of the terminal; 0: it is none
	colour bool

	mu sync.Mutex
	// Guarded by mu.
	group string
	strip []cases.Verdict
	last  []conformance.Outcome // those of the case at hand
}

// NewProgress returns a Progress that writes to out. A width of more than 20 is that of a terminal, which understands ANSI's escape sequences; any
// other means that out is none. colour paints verdicts.
func NewProgress(out io.Writer, width int, colour bool) *Progress {
	if width <= 20 {
		width, colour = 0, false
	}
	return &Progress{out: out, width: width, colour: colour}
}

// Add shows an outcome.
func (p *Progress) Add(o conformance.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width == 0 {
		if len(p.last) > 0 && p.last[0].ID != o.ID {
			p.writeCase()
		}
		p.last = append(p.last, o)
		return
	}
	if group, _, _ := strings.Cut(o.ID, "/"); group != p.group {
		p.endStrip()
		p.group, p.strip = group, nil
	}
	p.strip = append(p.strip, o.Verdict)
	fmt.Fprint(p.out, "\r\x1b[K"+p.line())
}

// AddMutant shows what the cases made of a mutant: a sign on a terminal, elsewhere a line where it survived.
func (p *Progress) AddMutant(t mutants.MutantResult) {
	if v := trialVerdict(t); p.width > 0 || v == cases.Fail {
		p.Add(conformance.Outcome{ID: mutantGroup + "/" + t.Name, Verdict: v})
	}
}

// Say shows a line of its own, about what takes long and has no steps.
func (p *Progress) Message(what, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	fmt.Fprintf(p.out, "%-12s %s\n", what, line)
}

// Close writes what is left.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	fmt.Fprintln(p.out)
}

// finish ends the line at hand.
func (p *Progress) finish() {
	p.endStrip()
	if len(p.last) > 0 {
		p.writeCase()
	}
	p.group = ""
}

func (p *Progress) endStrip() {
	if p.group != "" && p.width > 0 {
		fmt.Fprintln(p.out)
	}
}

// signs are verdicts in one letter; letters can be told apart without their colours.
var signs = map[cases.Verdict]string{
	cases.Pass: ".", cases.Fail: "F", cases.Warn: "w", cases.Info: "i", cases.Skip: "s", cases.XFail: "x", cases.XPass: "X",
	cases.SetupError: "E", cases.NotRun: "-",
}

// paints are the colours of ANSI.
var paints = map[cases.Verdict]string{
	cases.Pass: "32", cases.Fail: "1;31", cases.Warn: "33", cases.Info: "36", cases.Skip: "2", cases.XFail: "35", cases.XPass: "1;31",
	cases.SetupError: "1;31", cases.NotRun: "2",
}

// line is the strip of the group at hand. Where the terminal is too narrow, the signs are those of the latest runs.
func (p *Progress) line() string {
	counts, bad := map[cases.Verdict]int{}, 0
	for _, v := range p.strip {
		counts[v]++
		if badly(v) {
			bad++
		}
	}
	end := fmt.Sprintf("  %d passed", counts[cases.Pass])
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
		b.WriteString(p.paint(v, signs[v]))
	}
	return b.String() + end
}

func (p *Progress) paint(v cases.Verdict, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + paints[v] + "m" + text + "\x1b[0m"
}

// writeCase writes the line of a case: the worst verdict, and in which ways it was that, if not in all.
func (p *Progress) writeCase() {
	worst := p.last[0]
	seconds := 0.0
	var ways, all []string
	for _, o := range p.last {
		if rank(o.Verdict) < rank(worst.Verdict) {
			worst = o
		}
		seconds += o.Seconds
	}
	for _, o := range p.last {
		all = append(all, o.Way)
		if o.Verdict == worst.Verdict {
			ways = append(ways, o.Way)
		}
	}
	p.last = nil
	about := fmt.Sprintf("%s, %.0f ms", compress(ways, all), seconds*1000)
	switch {
	case worst.Verdict == cases.Skip || worst.Verdict == cases.NotRun || worst.Verdict == cases.XFail:
		about = worst.Reason
	case len(ways) < len(all):
		about = fmt.Sprintf("%s of %d ways, %.0f ms", compress(ways, all), len(all), seconds*1000)
	}
	fmt.Fprintf(p.out, "%-5s %-36s %s\n", head(worst.Verdict), worst.ID, about)
}
