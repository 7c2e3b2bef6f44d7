package conformancecmd

import (
	"fmt"
	"io"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/spf13/cobra"
)

func newConformanceCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Check recorded histories against the guarantees of a watch",
		Long: `Check every recorded history (*` + checker.FileExtension + `) in a directory against the guarantees of
a watch. Tests under faults and conformance self record histories.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return checkHistories(args[0], cmd.OutOrStdout()) },
	}
}

func checkHistories(dir string, out io.Writer) error {
	all, err := checker.CheckDir(dir, nil)
	if err != nil {
		return cli.WithCode(cli.ExitUntestable, err)
	}
	bad := 0
	for _, c := range all {
		err := c.Err
		if err == nil {
			err = c.Report.Err()
		}
		if err == nil {
			fmt.Fprintf(out, "ok    %s\n%s\n\n", c.Path, &c.Report.Summary)
			continue
		}
		bad++
		fmt.Fprintf(out, "FAIL  %s\n%v\n\n", c.Path, err)
	}
	what := "histories"
	if len(all) == 1 {
		what = "history"
	}
	fmt.Fprintf(out, "%d %s checked, %d failed\n", len(all), what, bad)
	if bad > 0 {
		return cli.WithCode(cli.ExitFailure, nil)
	}
	return nil
}
