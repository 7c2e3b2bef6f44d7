package benchcmd

import (
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// lineInterval is the interval at which progress is written if the output is not a terminal.
const lineInterval = 5 * time.Second

// A progress shows the state of a run. On a terminal, it overwrites one line. Otherwise, it writes
// a new line from time to time.
type progress struct {
	out   io.Writer
	width int // zero if out is not a terminal
	last  time.Time
}

func newProgress(out io.Writer) *progress {
	width := cli.Terminal(out)
	return &progress{out: out, width: width}
}

// phase shows that a part of the run begins.
func (p *progress) phase(format string, args ...any) { p.show(true, format, args...) }

// set shows a new state. If the output is not a terminal, it skips most states.
func (p *progress) set(format string, args ...any) {
	p.show(time.Since(p.last) >= lineInterval, format, args...)
}

func (p *progress) show(line bool, format string, args ...any) {
	switch {
	case p.width > 0:
		// Nothing depends on the progress, so the error is ignored.
		_ = cli.WriteStatus(p.out, fmt.Sprintf(format, args...), p.width)
	case line:
		p.last = time.Now()
		p.note(format, args...)
	}
}

// note writes a line that later states do not overwrite.
func (p *progress) note(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.out, "listwatch: "+format+"\n", args...)
}

// end removes the status line from a terminal.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
