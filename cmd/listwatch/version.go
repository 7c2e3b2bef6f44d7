package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cli.Args(cobra.NoArgs),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "listwatch %s, %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
		},
	}
}

// buildVersion returns the module version or the commit from the build information.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}
