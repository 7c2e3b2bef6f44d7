package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/conformance/mutants"
	"github.com/listwatch/listwatch/conformance/robustness"
)

// What a run is about; see package cases.
type (
	// A Target is a server under test.
	Target = cases.Target
	// A Setup is what a case wants of the server otherwise than usual.
	Setup = cases.Setup
	// A Site is a server that runs, for one case.
	Instance = cases.Instance
	// A Store writes to the collection of a Site.
	Store = cases.Store
	// An Ability is what a Target can do for a case.
	Ability = cases.Ability
	// A T is whom a case tells what it finds.
	T = cases.T
	// A Case is a rule of the protocol, and what tests it.
	Case = cases.Case
	// An Outcome is how one run of a case went.
	Outcome = cases.Outcome
	// A Verdict is how a run ended: pass, fail, skip and so on.
	Verdict = cases.Verdict
)

// List returns all cases, in the order of the catalogue.
func List() []Case { return cases.All() }

// Run tests a server in a Go test: a subtest GROUP/NAME/WAY for each case and each way to reach the server, WAY being a transport of
// this module's client. A case that the target does not offer enough for is skipped, and says what is missing.
func Run(t *testing.T, target Target) { cases.Run(t, target) }

// Options say which cases [Execute] runs and how it judges them. The zero Options run everything.
type Options struct {
	// Subject leaves out rules that are about the other end alone: Server or Client; empty: none are left out.
	Subject cases.Subject
	// Run and Skip are patterns of names, as in [Match]. An empty Run is all.
	Run, Skip []string
	// Known are failures that are expected; nil: none.
	KnownFailures *KnownFailures
	// Strict makes a rule that is no must a failure where it is broken, instead of a warning.
	Strict bool
}

// A Report is what [Execute] found.
type Report struct {
	Tool    string    `json:"tool"` // listwatch and its version
	Target  string    `json:"target"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Strict  bool      `json:"strict,omitempty"`
	// Notes are those of the target. Command is the command line that the run was started by, without patterns and files, so that
	// --run and a name behind it runs one case again; empty: it was none.
	Notes   []string `json:"notes,omitempty"`
	Command []string `json:"command,omitempty"`
	// Outcomes are in the order of the catalogue; a case that was not selected has none.
	Outcomes []Outcome `json:"outcomes"`
	// Unmatched are patterns of known failures that no selected case bears.
	UnmatchedPatterns []string `json:"unmatched,omitempty"`
	// Mutants and Faults say how hard this module and the suite itself were tried, in a run that did that; nil: it did not.
	Mutants    *mutants.Result    `json:"mutants,omitempty"`
	Robustness *robustness.Result `json:"faults,omitempty"`
	// Unfinished says what, after the cases, was not tried to its end, and why; empty: nothing.
	Unfinished string `json:"unfinished,omitempty"`
}

// Execute runs the cases on the target, one after another, and tells each outcome to progress, if it is not nil. Where ctx ends, the rest
// is not run, and the report says so. A bad pattern is an error of code Invalid, before anything is run.
func Execute(ctx context.Context, target Target, o Options, progress func(Outcome)) (*Report, error) {
	selected, err := o.selected()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	r := &Report{Tool: tool(), Target: target.Name, Started: start.UTC(), Strict: o.Strict, Notes: target.Notes}
	for _, c := range selected {
		c.Execute(ctx, target, o.wants, func(out Outcome) {
			out = o.judge(out)
			r.Outcomes = append(r.Outcomes, out)
			if progress != nil {
				progress(out)
			}
		})
	}
	if o.KnownFailures != nil && ctx.Err() == nil {
		r.UnmatchedPatterns = o.KnownFailures.Unmatched(r.judged())
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// judged returns the names of the runs that came to a verdict.
func (r *Report) judged() (names []string) {
	for _, o := range r.Outcomes {
		if o.Verdict != cases.NotRun {
			names = append(names, o.Name())
		}
	}
	return names
}

// Check returns the error that Execute would return for o.
func (o Options) Check() error {
	_, err := o.selected()
	return err
}

// selected returns the cases of which some runs are wanted.
func (o Options) selected() ([]Case, error) {
	for _, p := range slices.Concat(o.Run, o.Skip) {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	all := List()
	for _, p := range o.Run {
		if !slices.ContainsFunc(all, func(c Case) bool { return Match(caseOf(p), c.ID) }) {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("%q names no case", p)}
		}
	}
	return slices.DeleteFunc(all, func(c Case) bool {
		if o.Subject != "" && c.Subject != o.Subject && c.Subject != cases.Both {
			return true
		}
		return len(o.Run) > 0 && !slices.ContainsFunc(o.Run, func(p string) bool { return Match(caseOf(p), c.ID) })
	}), nil
}

// caseOf is a pattern without the part for the way.
func caseOf(pattern string) string {
	parts := strings.SplitN(pattern, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// wants says of a name whether it is to be run. That of a case that can't be run has no way: it is wanted for any.
func (o Options) wants(name string) bool {
	if matchAny(o.Skip, name) {
		return false
	}
	return len(o.Run) == 0 || slices.ContainsFunc(o.Run, func(p string) bool {
		return Match(p, name) || strings.Count(name, "/") == 1 && Match(caseOf(p), name)
	})
}

// judge holds an outcome against what is known and how strict the run is.
func (o Options) judge(out Outcome) Outcome {
	if out.Verdict == cases.Warn && o.Strict {
		out.Verdict = cases.Fail
	}
	reason, known := o.KnownFailures.Reason(out.Name())
	switch failed := out.Verdict == cases.Fail || out.Verdict == cases.Warn; {
	case !known:
	case failed:
		out.Verdict, out.Reason = cases.XFail, reason
	case out.Verdict == cases.Pass:
		out.Verdict, out.Reason = cases.XPass, "it is listed as a known failure: "+reason
	}
	return out
}

// OK reports whether the run found nothing wrong: no failure, no expected one that did not come, no pattern that names nothing, everything
// was run, no mutant survived, and nobody missed anything under faults.
func (r *Report) OK() bool {
	return len(r.UnmatchedPatterns) == 0 && r.Unfinished == "" && !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict.IsFailure() }) &&
		(r.Mutants == nil || r.Mutants.OK()) && (r.Robustness == nil || r.Robustness.OK())
}

// Unusable reports whether nothing could be learnt: no case began.
func (r *Report) SetupFailed() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == cases.SetupError }) &&
		!slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == cases.Pass || o.Verdict == cases.Fail })
}

// tool is listwatch and the version that is built in.
func tool() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "listwatch"
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	i := slices.IndexFunc(modules, func(m *debug.Module) bool { return m.Path == "github.com/listwatch/listwatch" })
	if i < 0 || modules[i].Version == "" {
		return "listwatch"
	}
	return "listwatch " + modules[i].Version
}
