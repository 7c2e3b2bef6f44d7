package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A VerdictChange is a run whose verdict differs between two reports. Before or After is
// empty if the run is in one report only.
type VerdictChange struct {
	Name          string
	Before, After runner.Verdict
	// Message is the first failure message of a run that fails or warns now.
	Message string
}

// Regressed reports whether a run fails or warns now but did not before.
func (c VerdictChange) Regressed() bool { return isBad(c.After) && !isBad(c.Before) }

func isBad(v runner.Verdict) bool { return v.IsFailure() || v == runner.Warn }

// Diff returns the runs whose verdicts differ between a and b, in the order of b, followed
// by the runs that only a contains.
func Diff(a, b *conformance.Report) (all []VerdictChange) {
	before, after := map[string]runner.Verdict{}, map[string]bool{}
	for _, o := range a.Outcomes {
		before[o.Name()] = o.Verdict
	}
	for _, o := range b.Outcomes {
		after[o.Name()] = true
		if was := before[o.Name()]; was != o.Verdict {
			c := VerdictChange{Name: o.Name(), Before: was, After: o.Verdict}
			if len(o.Messages) > 0 && isBad(o.Verdict) {
				c.Message = o.Messages[0]
			}
			all = append(all, c)
		}
	}
	for _, o := range a.Outcomes {
		if !after[o.Name()] {
			all = append(all, VerdictChange{Name: o.Name(), Before: o.Verdict})
		}
	}
	return all
}

// WriteDiff writes changes as text.
func WriteDiff(w io.Writer, changes []VerdictChange) error {
	out := bufio.NewWriter(w)
	worse := 0
	for _, c := range changes {
		mark := " "
		if c.Regressed() {
			mark = "!"
			worse++
		}
		fmt.Fprintf(out, "%s %s: %s, was %s\n", mark, c.Name, orNone(c.After), orNone(c.Before))
		if c.Message != "" {
			writeBlock(out, "    ", c.Message)
		}
	}
	fmt.Fprintf(out, "%s, %d regressed\n", plural(len(changes), "change"), worse)
	return out.Flush()
}

func orNone(v runner.Verdict) string {
	if v == "" {
		return "not in the report"
	}
	return string(v)
}
