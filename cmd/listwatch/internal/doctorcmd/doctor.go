package doctorcmd

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// options contains the flags of doctor.
type options struct {
	remote.Connection
	idle    time.Duration
	echoURL string
	output  string
}

// New returns the command listwatch doctor.
func New() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "doctor URL",
		Short: "Find out what proxies do to the watches of a collection",
		Long: `Find out what stands between this client and a server, and what it does to
watches: buffering, idle timeouts, removed Upgrade headers, compression, limits
of headers, an older version of HTTP, a changed Host, a wrong clock,
certificates that clients do not trust, a server that sends no bookmarks. For
each problem doctor prints the settings that solve it, for nginx, HAProxy,
Caddy, Envoy, Traefik, Apache, lighttpd and Varnish.

URL is the collection, as for the command watch. doctor only reads. It watches
a selection without objects for the time of --idle.

What reaches the server is seen at its path ` + echo.Path + `, which "listwatch
serve" and "listwatch relay" have. With other servers these checks are skipped.

The exit code is 1 if there is a problem.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.AddFlags(f)
	for _, name := range []string{"server", "compress"} {
		_ = f.MarkHidden(name) // doctor has a URL as argument, and does not use --compress
	}
	f.DurationVar(&o.idle, "idle", 2*time.Minute,
		"how long silent watches are observed; 0 or a negative value skips this check")
	f.StringVar(&o.echoURL, "echo", "",
		"`URL` that reports the requests as they reach the server; if empty, "+echo.Path+
			" on the host of the collection")
	f.StringVarP(&o.output, "output", "o", "text", "`format`: text or json")
	return cmd
}

func (o *options) run(ctx context.Context, arg string, out, notes io.Writer) error {
	if o.output != "text" && o.output != "json" {
		return cli.Usagef("--output %q: must be text or json", o.output)
	}
	e, err := o.newExamination(arg)
	if err != nil {
		return err
	}
	e.report = report{out: out, notes: notes, json: o.output == "json"}
	defer e.close()
	e.examine(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.report.finish(); err != nil {
		return err
	}
	if e.report.problems() > 0 {
		return cli.WithCode(cli.ExitFailure, nil)
	}
	return nil
}
