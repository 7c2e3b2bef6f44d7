package conformancecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Hold a server or a client to the protocol",
		Long: `Hold a server or a client of any make to the protocol of Kubernetes' list and watch, case by case, over every transport that it speaks, and
report what is wrong and why.

It exits with 0 where every must that could be tested holds, 1 where one does not, 2 where the command line can't be understood and 3 where the
target can't be tested at all.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newConformanceServer(), newConformanceClient(), newConformanceSelf(), newConformanceList(), newConformanceExplain(), newConformanceCheck(),
		newConformanceDiff(),
	)
	return cmd
}

// suiteOptions are the flags that a run against a server and one against a client share.
type suiteOptions struct {
	run, skip     []string
	strict        bool
	seed          uint64
	timeout       time.Duration
	knownFailures string

	json, junit, html, markdown string
}

func (o *suiteOptions) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.run, "run", nil, "cases to run, as in resume, resume/from-rv or resume/*/h2; repeatable; all, if none is given")
	f.StringArrayVar(&o.skip, "skip", nil, "cases to leave out, in the same way; repeatable")
	f.BoolVar(&o.strict, "strict", false, "take every rule that is broken for a failure, also one that is no must")
	f.Uint64Var(&o.seed, "seed", 0, "what random cases begin from; zero: another one each time")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long a case waits for what must come; at least 2s")
	f.StringVar(&o.knownFailures, "known-failures", "", `file with the failures that are expected, a line each: PATTERN # REASON`)
	f.StringVar(&o.json, "json", "", "file for a report that can be read back, compared and kept")
	f.StringVar(&o.junit, "junit", "", "file for a report that build servers read")
	f.StringVar(&o.html, "html", "", "file for a report for a browser")
	f.StringVar(&o.markdown, "md", "", "file for a report in Markdown")
}

// minTimeout is how long a case waits at the least: some wait for what a sound server does after a second.
const minTimeout = 2 * time.Second

// options are what the flags mean for a run.
func (o *suiteOptions) options(subject harness.Subject) (conformance.Options, error) {
	all := conformance.Options{Subject: subject, Run: o.run, Skip: o.skip, Strict: o.strict}
	if o.timeout < minTimeout {
		return all, cli.Usagef("--timeout %v: want at least %v, or servers fail that are sound", o.timeout, minTimeout)
	}
	if o.knownFailures != "" {
		var err error
		if all.KnownFailures, err = conformance.ReadKnownFailures(o.knownFailures); err != nil {
			return all, cli.Usagef("--known-failures %s: %w", o.knownFailures, err)
		}
	}
	if err := all.Check(); err != nil {
		return all, cli.UsageError(err)
	}
	return all, nil
}

// more is what a run does after its cases.
type selfTest func(ctx context.Context, r *conformance.Report, p *report.Progress) error

// execute runs the cases and what is after them, shows them as they come and writes all reports. command is how to begin such a run again.
func (o *suiteOptions) execute(
	ctx context.Context, t conformance.Target, all conformance.Options, command []string, out io.Writer, after ...selfTest,
) error {
	t.Seed = o.seed
	width, colour := cli.Terminal(out)
	progress := report.NewProgress(out, width, colour)
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
	r.Command = append(command, o.repeatFlags()...)
	err = errors.Join(report.Text(out, r), o.write(r))
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

// words are the flags that a second run needs to see the same.
func (o *suiteOptions) repeatFlags() (repeatFlags []string) {
	if o.strict {
		repeatFlags = append(repeatFlags, "--strict")
	}
	if o.seed != 0 {
		repeatFlags = append(repeatFlags, "--seed", fmt.Sprint(o.seed))
	}
	return repeatFlags
}

// write writes the reports that are wanted as files.
func (o *suiteOptions) write(r *conformance.Report) error {
	var errs []error
	for _, f := range []struct {
		name  string
		write func(io.Writer, *conformance.Report) error
	}{{o.json, report.JSON}, {o.junit, report.JUnit}, {o.html, report.HTML}, {o.markdown, report.Markdown}} {
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

// targetError is what is wrong with a target: a mistake in how it was named, or that it can't be tested.
func targetError(err error) error {
	if e, ok := errors.AsType[*listwatch.Error](err); ok && e.Code == listwatch.Invalid && e.Err == nil {
		return cli.UsageError(err)
	}
	return cli.WithCode(cli.ExitUntestable, err)
}
