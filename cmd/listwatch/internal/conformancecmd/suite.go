package conformancecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/spf13/pflag"
)

// suiteOptions contains the flags that all runs share.
type suiteOptions struct {
	run, skip     []string
	strict        bool
	seed          uint64
	timeout       time.Duration
	knownFailures string
	level         int
	set           string
	repetition

	json, junit, html string
}

func (s *suiteOptions) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.run, "run", nil,
		"`pattern` of cases to run, such as resume, resume/from-rv or resume/*/h2; if none, all (repeatable)")
	f.StringArrayVar(&s.skip, "skip", nil, "`pattern` of cases to skip (repeatable)")
	f.BoolVar(&s.strict, "strict", false, "report every broken rule as a failure, even if it is not a must")
	f.Uint64Var(&s.seed, "seed", 0, "`seed` of random cases; 0 means a random seed")
	f.DurationVar(&s.timeout, "timeout", 10*time.Second, "how long a case waits for an expected event; at least 2s")
	f.StringVar(&s.knownFailures, "known-failures", "", "`file` with one known failure per line: PATTERN # REASON")
	f.IntVar(&s.level, "level", 0,
		"`level` that the target must have, 1 to 3; only the cases of this level and below run")
	f.StringVar(&s.set, "set", "", "`set` of cases to judge by, such as "+conformance.SetNames()[0]+
		"; if empty, the newest")
	f.StringVar(&s.json, "json", "", "`file` for a JSON report")
	f.StringVar(&s.junit, "junit", "", "`file` for a JUnit report")
	f.StringVar(&s.html, "html", "", "`file` for an HTML report")
}

// addWatchFlag adds the flag of the runs that [suiteOptions.repeat] repeats.
func (s *suiteOptions) addWatchFlag(f *pflag.FlagSet) {
	f.StringVar(&s.watch, "watch", "", "`directory` of the target: when a file in it changes, run again what failed")
}

// minTimeout is the minimum of --timeout. Correct servers may take a second to respond, so
// they would fail with a shorter timeout.
const minTimeout = 2 * time.Second

// options converts the flags to the options of a run.
func (s *suiteOptions) options(subject harness.Subject) (conformance.Options, error) {
	all := conformance.Options{
		Subject: subject, Run: s.run, Skip: s.skip, Strict: s.strict, Level: s.level, Set: s.set,
	}
	if s.timeout < minTimeout {
		return all, cli.Usagef("--timeout %v: must be at least %v, because a correct server may need a second",
			s.timeout, minTimeout)
	}
	if s.knownFailures != "" {
		var err error
		if all.KnownFailures, err = conformance.ReadKnownFailures(s.knownFailures); err != nil {
			return all, cli.Usagef("--known-failures %s: %w", s.knownFailures, err)
		}
	}
	for _, name := range []string{s.json, s.junit, s.html} {
		path, err := filepath.Abs(name)
		if err != nil {
			return all, err
		}
		s.reports = append(s.reports, path)
	}
	if err := all.Check(); err != nil {
		return all, cli.UsageError(err)
	}
	return all, nil
}

// A selfTest runs after the cases and adds to the report.
type selfTest func(ctx context.Context, r *conformance.Report, p *report.Progress) error

// execute runs the cases and then the self tests, shows the progress and writes all reports.
// command is the command line that repeats the run.
func (s *suiteOptions) execute(
	ctx context.Context, t conformance.Target, all conformance.Options, command []string, out io.Writer,
	after ...selfTest,
) error {
	t.Seed = s.seed
	progress := report.NewProgress(out)
	r, err := conformance.Execute(ctx, t, all, progress.Add)
	var left error
	for _, f := range after {
		if err == nil && left == nil {
			left = f(ctx, r, progress)
		}
	}
	progress.Close()
	if err != nil {
		return err
	}
	if left != nil {
		r.Unfinished = cli.OneLine(left)
	}
	s.failed = failedCases(r)
	r.Command = append(command, s.repeatFlags()...)
	err = errors.Join(report.Text(out, r), s.write(r))
	switch {
	case err != nil:
		return err
	case r.SetupFailed():
		return cli.WithCode(cli.ExitUntestable, nil)
	case !r.OK():
		return cli.WithCode(cli.ExitFailure, nil)
	}
	return nil
}

// repeatFlags returns the flags that a command line needs to repeat the run.
func (s *suiteOptions) repeatFlags() (flags []string) {
	if s.strict {
		flags = append(flags, "--strict")
	}
	if s.level != 0 {
		flags = append(flags, "--level", fmt.Sprint(s.level))
	}
	if s.set != "" {
		flags = append(flags, "--set", s.set)
	}
	if s.seed != 0 {
		flags = append(flags, "--seed", fmt.Sprint(s.seed))
	}
	return flags
}

func (s *suiteOptions) write(r *conformance.Report) error {
	var errs []error
	for _, f := range []struct {
		name  string
		write func(io.Writer, *conformance.Report) error
	}{{s.json, report.JSON}, {s.junit, report.JUnit}, {s.html, report.HTML}} {
		if f.name != "" {
			errs = append(errs, writeReport(f.name, r, f.write))
		}
	}
	return errors.Join(errs...)
}

func writeReport(name string, r *conformance.Report, write func(io.Writer, *conformance.Report) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f, r), f.Close())
}

// targetError returns a usage error if the target was specified incorrectly, and otherwise
// an error with ExitUntestable.
func targetError(err error) error {
	if e, ok := errors.AsType[*listwatch.Error](err); ok && e.Code == listwatch.Invalid && e.Err == nil {
		return cli.UsageError(err)
	}
	return cli.WithCode(cli.ExitUntestable, err)
}
