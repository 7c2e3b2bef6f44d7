package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// These types are declared in the packages harness and runner.
type (
	// A Target is a server or a client under test.
	Target = harness.Target
	// A Setup is the configuration of the server that a case needs.
	Setup = harness.Setup
	// An Instance is a running server for one case.
	Instance = harness.Instance
	// A Store writes to the collection of an Instance.
	Store = harness.Store
	// An Ability is a capability of a Target, or a set of capabilities.
	Ability = harness.Ability
	// A T receives the results of a case. *testing.T implements it.
	T = harness.T
	// A Case is a rule of the protocol and its test.
	Case = harness.Case
	// An Outcome is the result of a case in one variant.
	Outcome = runner.Outcome
	// A Verdict is the conclusion of an Outcome, such as pass or fail.
	Verdict = runner.Verdict
)

// List returns all cases, one group after the other.
func List() []Case { return cases.All() }

// Run runs all cases as subtests of t, named GROUP/NAME/VARIANT. A variant is a transport
// and its implementation, such as h2 or ws-native. A case is skipped if the target lacks
// an ability that it needs.
func Run(t *testing.T, target Target) { cases.Run(t, target) }

// Options selects the cases that [Execute] runs, and configures their verdicts. The zero
// Options select all cases.
type Options struct {
	// Subject restricts the run to rules that apply to servers or to clients. If empty, all
	// rules are tested.
	Subject harness.Subject
	// Run and Skip are patterns for names; see [Match]. If Run is empty, all cases are
	// selected.
	Run, Skip []string
	// KnownFailures holds the expected failures. It may be nil.
	KnownFailures *KnownFailures
	// Strict reports violations of a "should" or a "promise" as failures instead of warnings; see
	// [harness.Strength].
	Strict bool
	// Level is the level that the target must have. If a must of this level, or of a lower one, was
	// not tested and is not a known failure, the run fails. Zero requires no level. Set is the name
	// of the set to judge by. If empty, the newest set is used. If Level or Set is given, only
	// cases of the set run, and only up to the level.
	Level int
	Set   string
}

// A Report is the result of [Execute].
type Report struct {
	Tool    string    `json:"tool"` // listwatch and its version
	Target  string    `json:"target"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	// Notes are the notes of the target. Command is the command line of the run, without patterns
	// and file names. Append --run and the name of a run to it to repeat that run. Command is empty
	// if the run was not started from a command line.
	Notes   []string `json:"notes,omitempty"`
	Command []string `json:"command,omitempty"`
	// Outcomes are in the order of [List]. Cases that were not selected are absent.
	Outcomes []Outcome `json:"outcomes"`
	// UnmatchedPatterns are the patterns of known failures that match no run, although the options
	// select every run that they could match.
	UnmatchedPatterns []string `json:"unmatchedPatterns,omitempty"`
	// Robustness is the result of the tests under faults. It is nil if these tests were not run.
	Robustness *robustness.Result `json:"robustness,omitempty"`
	// Unfinished is the reason why the run ended early, such as a target that no longer responds.
	// It is empty if the run finished. Left is the number of remaining cases.
	Unfinished string `json:"unfinished,omitempty"`
	Left       int    `json:"left,omitempty"`
	// Levels holds the levels of the target. It is nil if the run was incomplete or if the options
	// selected single cases.
	Levels *Levels `json:"levels,omitempty"`
}

// Execute runs the selected cases one after another, and passes each outcome to progress, which
// may be nil. If ctx ends, the remaining cases have the verdict not-run. If the target stops
// responding, the run ends; see [Report.Unfinished]. An invalid pattern, or a pattern in o.Run
// that matches no case, is an error of code Invalid; then no case runs.
func Execute(ctx context.Context, target Target, o Options, progress func(Outcome)) (*Report, error) {
	selected, err := o.selectedCases()
	if err != nil {
		return nil, err
	}
	set, err := o.set()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	r := &Report{Tool: toolVersion(), Target: target.Name, Started: start.UTC(), Notes: target.Notes}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for i, c := range selected {
		runner.Execute(ctx, c, target, o.selects, func(out Outcome) {
			if err := awaitTarget(ctx, target, out.Verdict); err != nil {
				err = fmt.Errorf("the target no longer responds: %w", err)
				r.Unfinished, r.Left = err.Error(), len(selected)-i-1
				stop(err) // the remaining variants of the case are not run
			}
			out = o.adjustVerdict(out)
			r.Outcomes = append(r.Outcomes, out)
			if progress != nil {
				progress(out)
			}
		})
		if r.Unfinished != "" {
			break
		}
	}
	if o.KnownFailures != nil && ctx.Err() == nil {
		r.UnmatchedPatterns = slices.DeleteFunc(o.KnownFailures.Unmatched(r.namesWithVerdict()),
			func(p string) bool { return o.deselects(p, target, set) })
	}
	if len(o.Run)+len(o.Skip) == 0 && ctx.Err() == nil {
		r.Levels = o.judge(r, set)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// awaitTarget waits until the target responds again after a run with the verdict v, because the
// case may have crashed the target, and a supervisor may restart it. It returns an error if the
// wait takes longer than target.Patience, or if the target is a process that has exited. It returns
// immediately if the run did not fail or target.Ping is nil.
func awaitTarget(ctx context.Context, target Target, v Verdict) error {
	switch {
	case target.Ping == nil, v == runner.Pass, v == runner.Info, v == runner.Skip, v == runner.NotRun:
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(target.Patience, harness.DefaultPatience))
	defer cancel()
	for {
		err := target.Ping(waiting)
		if err == nil || errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-time.After(pingInterval):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil // the run was interrupted
			}
			return err
		}
	}
}

// pingInterval is the delay between attempts to reach a target that does not respond.
const pingInterval = 100 * time.Millisecond

// namesWithVerdict returns the names of the runs that were not interrupted.
func (r *Report) namesWithVerdict() (names []string) {
	for _, o := range r.Outcomes {
		if o.Verdict != runner.NotRun {
			names = append(names, o.Name())
		}
	}
	return names
}

// Check returns the error that [Execute] would return for o.
func (o Options) Check() error {
	_, err := o.selectedCases()
	return err
}

// selectedCases returns the cases that o.Subject and o.Run select. [Options.selects] applies
// Run and Skip to each run of these cases.
func (o Options) selectedCases() ([]Case, error) {
	for _, p := range slices.Concat(o.Run, o.Skip) {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	set, err := o.set()
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(List(), func(c Case) bool { return !o.judges(set, c) })
	for _, p := range o.Run {
		if !slices.ContainsFunc(all, func(c Case) bool { return Match(casePattern(p), c.ID) }) {
			return nil, &listwatch.Error{
				Code:    listwatch.Invalid,
				Message: fmt.Sprintf("pattern %q matches no case; listwatch conformance list shows all cases", p),
			}
		}
	}
	return slices.DeleteFunc(all, func(c Case) bool {
		return !o.concerns(c) || len(o.Run) > 0 &&
			!slices.ContainsFunc(o.Run, func(p string) bool { return Match(casePattern(p), c.ID) })
	}), nil
}

// judges reports whether c is among the cases that o.Level and o.Set select.
func (o Options) judges(set *Set, c Case) bool {
	return o.Level == 0 && o.Set == "" || slices.ContainsFunc(o.judged(set), func(ids []string) bool {
		return slices.Contains(ids, c.ID)
	})
}

// concerns reports whether the rule of c constrains o.Subject.
func (o Options) concerns(c Case) bool {
	return o.Subject == "" || c.Side() == o.Subject || c.Side() == harness.Both
}

// deselects reports whether the pattern of a known failure matches runs that o does not select.
// Such a pattern is not stale: the known failures of a target can be passed to a run of a few
// cases.
func (o Options) deselects(pattern string, target Target, set *Set) bool {
	return slices.ContainsFunc(List(), func(c Case) bool {
		if !o.concerns(c) {
			return false
		}
		names := []string{c.ID}
		for _, v := range runner.Variants(c, target) {
			names = append(names, c.ID+"/"+v)
		}
		return slices.ContainsFunc(names, func(name string) bool {
			return Match(pattern, name) && !(o.selects(name) && o.judges(set, c))
		})
	})
}

// casePattern returns a pattern without its variant.
func casePattern(pattern string) string {
	parts := strings.SplitN(pattern, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// selects reports whether the run with the given name is selected. If a case cannot run, its name
// has no variant. Then every pattern for the case selects it, including patterns with a variant.
func (o Options) selects(name string) bool {
	if matchAny(o.Skip, name) {
		return false
	}
	return len(o.Run) == 0 || slices.ContainsFunc(o.Run, func(p string) bool {
		return Match(p, name) || strings.Count(name, "/") == 1 && Match(casePattern(p), name)
	})
}

// adjustVerdict applies Strict and KnownFailures to an outcome.
func (o Options) adjustVerdict(out Outcome) Outcome {
	if out.Verdict == runner.Warn && o.Strict {
		out.Verdict = runner.Fail
	}
	reason, known := o.KnownFailures.Reason(out.Name())
	switch failed := out.Verdict == runner.Fail || out.Verdict == runner.Warn; {
	case !known:
	case failed:
		out.Verdict, out.Reason = runner.XFail, reason
	case out.Verdict == runner.Pass:
		out.Verdict, out.Reason = runner.XPass, "it passes although it is listed as a known failure: "+reason
	}
	return out
}

// OK reports whether the run found no problem: every run had an acceptable verdict, every
// known failure matched a run, the run was not interrupted, the target responded to the end, every
// must of the required level was tested, and no guarantee was violated under faults.
func (r *Report) OK() bool {
	failed := slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict.IsFailure() })
	return !failed && len(r.UnmatchedPatterns) == 0 && r.Unfinished == "" &&
		(r.Levels == nil || len(r.Levels.Missing) == 0) && (r.Robustness == nil || r.Robustness.OK())
}

// FailTest reports each run whose verdict is a failure as an error of t, with its messages and
// its timeline. It returns the number of runs that passed, so that a test can require a minimum.
func (r *Report) FailTest(t testing.TB) (passed int) {
	t.Helper()
	for _, o := range r.Outcomes {
		switch {
		case o.Verdict == runner.Pass:
			passed++
		case o.Verdict.IsFailure():
			t.Errorf("%s: %s: %q %s\n%s\n%s", o.Name(), o.Verdict, o.Messages, o.Reason, o.Rule,
				strings.Join(o.Timeline, "\n"))
		}
	}
	return passed
}

// SetupFailed reports whether no case could start. Such a report contains no finding about the
// target.
func (r *Report) SetupFailed() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == runner.SetupError }) &&
		!slices.ContainsFunc(r.Outcomes, func(o Outcome) bool {
			return o.Verdict == runner.Pass || o.Verdict == runner.Fail
		})
}

// toolVersion returns "listwatch" and the version from the build information.
func toolVersion() string {
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
