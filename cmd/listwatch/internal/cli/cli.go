// Package cli contains code that all commands share: exit codes, errors and flag types.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// The exit codes of the program.
const (
	ExitOK = iota
	ExitFailure
	// ExitUsage means that the command line is invalid.
	ExitUsage
	// ExitUntestable means that a conformance target cannot be tested.
	ExitUntestable
	// ExitUnservable means that stored data cannot be served until an operator repairs it.
	ExitUnservable
)

// An ExitError is an error that sets the exit code.
type ExitError struct {
	Code int
	// Err is printed before the program exits. If nil, the command has already reported the
	// problem.
	Err error
}

// Error implements error.
func (e *ExitError) Error() string { return fmt.Sprint(e.Err) }

// Unwrap returns e.Err.
func (e *ExitError) Unwrap() error { return e.Err }

// WithCode returns err as an [ExitError] with the given exit code.
func WithCode(code int, err error) error { return &ExitError{code, err} }

// UsageError returns an error for an invalid command line.
func UsageError(err error) error { return WithCode(ExitUsage, err) }

// Usagef is like [UsageError] with a formatted message.
func Usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }

// Execute runs a command line until the command or ctx ends, and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError(err) })
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	exit, ok := errors.AsType[*ExitError](err)
	if !ok {
		exit = &ExitError{ExitFailure, err}
	}
	switch {
	case exit.Err == nil:
	case exit.Code == ExitUsage:
		fmt.Fprintf(stderr, "listwatch: %s (see %s --help)\n", OneLine(err), cmd.CommandPath())
	default:
		fmt.Fprintf(stderr, "listwatch: %s\n", OneLine(err))
	}
	return exit.Code
}

// Args returns a cobra argument check like the given one, whose errors are usage errors. If there
// are too many arguments, the error names the first of these, and the flags to which it may belong
// by mistake.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if !cmd.HasSubCommands() { // otherwise an argument is an unknown command
			for n := len(args) - 1; n >= 0; n-- {
				if check(cmd, args[:n]) == nil {
					return unexpected(cmd, args[n])
				}
			}
		}
		return UsageError(err)
	}
}

// unexpected returns the error for an argument that cmd does not take. It may be meant as the value
// of a flag that takes none.
func unexpected(cmd *cobra.Command, argument string) error {
	var switches []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" {
			switches = append(switches, "--"+f.Name)
		}
	})
	hint := ""
	switch len(switches) {
	case 0:
	case 1:
		hint = ": " + switches[0] + " takes no value"
	default:
		hint = ": " + strings.Join(switches, " and ") + " take no values"
	}
	return Usagef("unexpected argument %q%s; usage: %s", argument, hint, cmd.UseLine())
}

// OneLine returns the message of err on one line.
func OneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, " ")
}

// Terminal returns the width of out if it is a terminal with a movable cursor, and otherwise 0.
func Terminal(out io.Writer) (width int) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 80
	}
	return width
}

// WriteStatus writes a line. If width is not zero, out is a terminal of that width, and the line
// replaces the previous line.
func WriteStatus(out io.Writer, line string, width int) error {
	if width == 0 {
		_, err := fmt.Fprintln(out, line)
		return err
	}
	if len(line) >= width {
		line = line[:width-1]
	}
	_, err := fmt.Fprintf(out, "\r\x1b[K%s", line)
	return err
}

// CommandName returns the command that starts this program again: its name if it is in the
// PATH, "go run" if the go command built it temporarily, and otherwise its path.
func CommandName() string {
	const name = "listwatch"
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	self := os.Args[0]
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "go run ./cmd/" + name
	}
	return self
}
