package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// A Change is a run whose verdict is not what it was. Before or After is empty where the run is in one report alone.
type VerdictChange struct {
	Name          string
	Before, After cases.Verdict
	// Message is the first of what is wrong now.
	Message string
}

// Worse reports whether a run that was not bad has become so.
func (c VerdictChange) Regressed() bool { return badly(c.After) && !badly(c.Before) }

func badly(v cases.Verdict) bool { return v.IsFailure() || v == cases.Warn }

// Diff returns the runs of which a and b say different things, in the order of b and then of a.
func Diff(a, b *conformance.Report) (all []VerdictChange) {
	before, after := map[string]cases.Verdict{}, map[string]bool{}
	for _, o := range a.Outcomes {
		before[o.Name()] = o.Verdict
	}
	for _, o := range b.Outcomes {
		after[o.Name()] = true
		if was := before[o.Name()]; was != o.Verdict {
			c := VerdictChange{Name: o.Name(), Before: was, After: o.Verdict}
			if len(o.Messages) > 0 && badly(o.Verdict) {
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

// WriteDiff writes changes for people.
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
	fmt.Fprintf(out, "%s, %d for the worse\n", plural(len(changes), "change"), worse)
	return out.Flush()
}

func orNone(v cases.Verdict) string {
	if v == "" {
		return "not in the report"
	}
	return string(v)
}
