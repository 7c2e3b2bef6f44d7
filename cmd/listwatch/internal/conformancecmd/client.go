package conformancecmd

import (
	"context"
	"fmt"
	"io"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/spf13/cobra"
)

// clientOptions contains the flags of conformance client.
type clientOptions struct {
	suiteOptions
	exec string
}

func newConformanceClient() *cobra.Command {
	var o clientOptions
	cmd := &cobra.Command{
		Use:   "client --exec COMMAND",
		Short: "Test a client against the protocol",
		Long: `Test a client: the suite plays correct and broken servers. The command reads
from its standard input what to watch, and writes to its standard output what
it sees; see docs/conformance-hook.md. An adapter for a client takes about 50
lines.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.conform(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.exec, "exec", "", "shell `command` that starts the client and implements the control hook")
	o.addFlags(f)
	o.addWatchFlag(f)
	return cmd
}

func (c *clientOptions) conform(ctx context.Context, out, notes io.Writer) error {
	if c.exec == "" {
		return cli.Usagef("set --exec to a command")
	}
	all, err := c.options(harness.Client)
	if err != nil {
		return err
	}
	return c.repeat(ctx, all, out, func(all conformance.Options) error { return c.once(ctx, all, out, notes) })
}

// once starts the command and tests the client.
func (c *clientOptions) once(ctx context.Context, all conformance.Options, out, notes io.Writer) error {
	client, err := adapters.ExecClient(ctx, c.exec, notes, c.timeout)
	if err != nil {
		return targetError(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			fmt.Fprintf(notes, "listwatch: the client failed when it was stopped: %s\n", cli.OneLine(err))
		}
	}()
	return c.execute(ctx, client.Target, all, []string{"listwatch", "conformance", "client", "--exec", c.exec}, out)
}
