package main

import (
	"github.com/listwatch/listwatch/cmd/listwatch/internal/benchcmd"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/conformancecmd"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/doctorcmd"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/readcmd"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/relaycmd"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/servecmd"
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "listwatch",
		Short:         "Serve, list and watch versioned collections, as Kubernetes does",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(servecmd.New(), servecmd.NewBackup(), relaycmd.New(), readcmd.NewGet(), readcmd.NewWatch(),
		conformancecmd.New(), benchcmd.New(), doctorcmd.New(), newVersion())
	return root
}
