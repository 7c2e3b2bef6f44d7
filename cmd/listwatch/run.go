package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
	// exitUnusable: there was nothing to test.
	exitUnusable
	// exitUnfit: what is stored can't be served before somebody has done something about it.
	exitUnfit
)

// A usageError is a command line that can't be understood, or parts of it that don't go together.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run is the program: it carries args out until that is done or ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	message := oneLine(err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(stderr, "listwatch: %s (see %s --help)\n", message, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(stderr, "listwatch: %s\n", message)
	if _, ok := errors.AsType[unusableError](err); ok {
		return exitUnusable
	}
	if _, ok := errors.AsType[unfitError](err); ok {
		return exitUnfit
	}
	return exitFailure
}

func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "listwatch",
		Short:         "Serve, list and watch versioned collections, as Kubernetes does",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newRelay(), newGet(), newWatch(), newConformance(), newVersion())
	return root
}

// args wraps what cobra has to say about the number of arguments.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
