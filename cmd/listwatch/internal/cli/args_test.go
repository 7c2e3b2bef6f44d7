package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestUnexpectedArgumentsAreNamed(t *testing.T) {
	for _, c := range []struct {
		check      cobra.PositionalArgs
		args, want string
	}{
		{cobra.NoArgs, "", ""},
		{cobra.NoArgs, "--wide --count=2", ""},
		{cobra.NoArgs, "--wide a b", `unexpected argument "a": --wide takes no value; usage: test KIND [flags]`},
		{cobra.NoArgs, "--wide --quiet a", `unexpected argument "a": --quiet and --wide take no values; usage: `},
		{cobra.NoArgs, "--count 2 a", `unexpected argument "a"; usage: `},
		{cobra.RangeArgs(1, 2), "a b", ""},
		{cobra.RangeArgs(1, 2), "a b --wide true", `unexpected argument "true": --wide takes no value; usage: `},
		{cobra.RangeArgs(1, 2), "--wide", "accepts between 1 and 2 arg(s), received 0"},
		{cobra.ExactArgs(1), "a b", `unexpected argument "b"; usage: `},
	} {
		cmd := &cobra.Command{Use: "test KIND", Args: Args(c.check), Run: func(*cobra.Command, []string) {}}
		cmd.Flags().Bool("wide", false, "")
		cmd.Flags().Bool("quiet", false, "")
		cmd.Flags().Int("count", 0, "")
		var stderr strings.Builder
		code := Execute(t.Context(), cmd, strings.Fields(c.args), nil, io.Discard, &stderr)
		wantCode := ExitOK
		if c.want != "" {
			wantCode = ExitUsage
		}
		if code != wantCode || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q: got exit code %d and %q, want %q", c.args, code, stderr.String(), c.want)
		}
	}
	parent := &cobra.Command{Use: "test", Args: Args(cobra.NoArgs), Run: func(*cobra.Command, []string) {}}
	parent.AddCommand(&cobra.Command{Use: "sub", Run: func(*cobra.Command, []string) {}})
	var stderr strings.Builder
	Execute(t.Context(), parent, []string{"other"}, nil, io.Discard, &stderr)
	if !strings.Contains(stderr.String(), `unknown command "other"`) {
		t.Errorf("got %q for an unknown command", stderr.String())
	}
}
