package benchcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
)

const help = `Measure a server: open watches, write objects at a steady rate, and report how
long each write takes to reach each watcher. The server may be any that speaks
the protocol, such as "listwatch serve" or a Kubernetes API server.

The command creates objects of its own, whose names start with "bench-", and
deletes them at the end, also after an interrupt. If the server does not permit
this, or with --read-only, it measures the start of the watches and the events
of other writers.

The exit code is 1 if a watcher missed an event, or received one twice or out of
order, or if the server could no longer be reached. The command shares its
processors with the measured server if both run on one machine.

The argument is the URL of a collection, or a resource of --server. For
Kubernetes, choose a kind without required fields, such as configmaps, or pass
an object of the kind with --template.`

// New returns the command listwatch bench.
func New() *cobra.Command {
	o := options{size: 1 << 10}
	cmd := &cobra.Command{
		Use:   "bench (URL | RESOURCE)",
		Short: "Measure the latency and throughput of a server",
		Long:  help,
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// run measures each transport and reports the results, even if it is interrupted.
func (o *options) run(ctx context.Context, argument string, f *pflag.FlagSet, out, notes io.Writer) error {
	t, err := o.locate(argument, f)
	if err != nil {
		return err
	}
	b := &bench{options: o, target: t, progress: newProgress(notes)}
	if o.template != "" {
		if b.template, err = readTemplate(o.template); err != nil {
			return err
		}
	}
	results := []*Result{}
	var failed error
	for name := range strings.SplitSeq(o.Transport, ",") {
		r, err := b.measure(ctx, name)
		if r != nil {
			results = append(results, r)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := o.report(results, t.url, out); err != nil {
		return err
	}
	if failed != nil {
		return remote.WithAdvice(failed)
	}
	return verdict(results)
}

// report writes the results in the chosen formats.
func (o *options) report(results []*Result, url string, out io.Writer) error {
	if o.html != "" {
		page, err := htmlPage(results, url)
		if err == nil {
			err = os.WriteFile(o.html, page, 0o644)
		}
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if o.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	if len(results) == 0 {
		return nil
	}
	return writeTable(out, results)
}

// verdict returns an error if events were missed, repeated or out of order, or if a watch or a
// write failed.
func verdict(results []*Result) error {
	for _, r := range results {
		switch {
		case r.Missed+r.Duplicates+r.OutOfOrder > 0:
			return fmt.Errorf("%s: %d events missed, %d received twice, %d out of order", r.Transport, r.Missed,
				r.Duplicates, r.OutOfOrder)
		case len(r.Errors) > 0:
			return fmt.Errorf("%s: %s", r.Transport, r.Errors[0])
		}
	}
	return nil
}
