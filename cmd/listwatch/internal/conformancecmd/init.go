package conformancecmd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/conformancecmd/skeleton"
	"github.com/spf13/cobra"
)

// A language is a programming language that "conformance init" writes adapters in.
type language struct {
	// extension is the extension of the adapter's file. dir is the prefix of the directory of the
	// skeletons, if each is a package of its own.
	extension, dir string
	// run is the command that runs a file.
	run string
}

var languages = map[string]language{
	"go":         {extension: ".go", dir: "go", run: "go run"},
	"javascript": {extension: ".mjs", run: "node"},
	"python":     {extension: ".py", run: "python3"},
}

func newConformanceInit() *cobra.Command {
	return &cobra.Command{
		Use:   "init (server|client) (go|javascript|python) [DIR]",
		Short: "Write the adapter of a server or a client",
		Long: `Write an adapter for a server or a client, and a file for its known failures, to
DIR, or to the current directory. Change the adapter so that it runs your
program. The adapter of a server starts it once for each case, and writes
objects to it over HTTP.`,
		Args: cli.Args(cobra.RangeArgs(2, 3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, ok := languages[args[1]]
			if !ok || args[0] != "server" && args[0] != "client" {
				return cli.Usagef("init %s %s: want server or client, and one of %s", args[0], args[1],
					strings.Join(slices.Sorted(maps.Keys(languages)), ", "))
			}
			return l.write(cmd.OutOrStdout(), args[0], strings.Join(args[2:], ""))
		},
	}
}

// write writes the adapter for a subject, server or client, to dir.
func (l language) write(out io.Writer, subject, dir string) error {
	source, failures := subject+l.extension, subject+l.extension+".txt"
	if l.dir != "" {
		source = l.dir + subject + "/main.go"
	}
	if subject == "server" {
		failures = "server.txt"
	}
	adapter, known := filepath.Join(dir, "adapter"+l.extension), filepath.Join(dir, "known_failures.txt")
	for from, to := range map[string]string{source: adapter, failures: known} {
		data, err := skeleton.Files.ReadFile(from)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return cli.UsageError(err) // the file exists, or the directory does not
		}
		_, err = f.Write(data)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "Change %s for your %s, and run:\n\n  listwatch conformance %s --exec '%s %s' --known-failures %s\n",
		adapter, subject, subject, l.run, adapter, known)
	return err
}
