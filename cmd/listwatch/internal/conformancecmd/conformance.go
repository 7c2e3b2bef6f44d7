package conformancecmd

import (
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/spf13/cobra"
)

// New returns the command listwatch conformance.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Test a server or a client against the protocol",
		Long: `Test a server or a client, written in any language, against the list-watch
protocol of Kubernetes, over every transport that it supports.

The exit code is 0 if every must that could be tested holds, 1 if one does not,
2 if the command line is invalid, and 3 if the target cannot be tested.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newConformanceServer(), newConformanceClient(), newConformanceSelf(), newConformanceInit(),
		newConformanceList(),
		newConformanceExplain(), newConformanceCheck(),
	)
	return cmd
}
