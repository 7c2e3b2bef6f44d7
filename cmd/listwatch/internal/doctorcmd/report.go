package doctorcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A verdict is the result of one check.
type verdict string

const (
	fine    verdict = "ok"
	note    verdict = "note"    // worth knowing, but not a problem
	unknown verdict = "unknown" // the check could not be made
	problem verdict = "PROBLEM"
)

// A finding describes the result of a check.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Text    string  `json:"text"`
	// Remedies are the settings that solve a problem, one element for each program.
	Remedies []remedy `json:"remedies,omitempty"`
}

// A report prints findings as soon as they are known, or all at the end as JSON.
type report struct {
	out, notes io.Writer
	json       bool
	findings   []finding
}

func (r *report) add(f finding) {
	r.findings = append(r.findings, f)
	if r.json {
		return
	}
	fmt.Fprintf(r.out, "%-8s %-12s %s\n", f.Verdict, f.Check, f.Text)
	for _, m := range f.Remedies {
		fmt.Fprintf(r.out, "%22s%s: %s\n", "", m.Program,
			strings.ReplaceAll(m.Settings, "\n", "\n"+strings.Repeat(" ", 24)))
	}
}

// progress writes a message about a slow check to r.notes.
func (r *report) progress(format string, args ...any) { fmt.Fprintf(r.notes, format+"\n", args...) }

func (r *report) problems() (n int) {
	for _, f := range r.findings {
		if f.Verdict == problem {
			n++
		}
	}
	return n
}

func (r *report) finish() error {
	if r.json {
		enc := json.NewEncoder(r.out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"findings": r.findings, "problems": r.problems()})
	}
	if n := r.problems(); n > 0 {
		_, err := fmt.Fprintf(r.out, "%d of %d checks found a problem\n", n, len(r.findings))
		return err
	}
	_, err := fmt.Fprintln(r.out, "no problems found")
	return err
}
