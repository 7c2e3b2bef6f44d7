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
	postgres postgresOptions
	idle     time.Duration
	echoURL  string
	output   string
}

// New returns the command listwatch doctor.
func New() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "doctor [URL]",
		Short: "Find out what proxies do to the watches of a collection, or what a database lacks",
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

With --postgres instead of URL, doctor finds out what keeps "listwatch serve" with
the same flags from serving tables of a database, and prints the SQL statements
that solve it. See docs/postgres.md.

The exit code is 1 if there is a problem.`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.AddFlags(f)
	for _, name := range []string{"server", "compress"} {
		_ = f.MarkHidden(name) // doctor has a URL as argument, and does not use --compress
	}
	o.postgres.register(f)
	f.DurationVar(&o.idle, "idle", 2*time.Minute,
		"how long silent watches are observed; 0 or a negative value skips this check")
	f.StringVar(&o.echoURL, "echo", "",
		"`URL` that reports the requests as they reach the server; if empty, "+echo.Path+
			" on the host of the collection")
	f.StringVarP(&o.output, "output", "o", "text", "`format`: text or json")
	return cmd
}

func (o *options) run(ctx context.Context, args []string, out, notes io.Writer) error {
	if o.output != "text" && o.output != "json" {
		return cli.Usagef("--output %q: must be text or json", o.output)
	}
	r := &report{out: out, notes: notes, json: o.output == "json"}
	var err error
	switch {
	case (len(args) == 0) == (o.postgres.dsn == ""):
		return cli.Usagef("name either the URL of a collection or --postgres")
	case len(args) == 0:
		err = o.postgres.examine(ctx, r)
	default:
		err = o.examine(ctx, args[0], r)
	}
	if err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	if r.problems() > 0 {
		return cli.WithCode(cli.ExitFailure, nil)
	}
	return nil
}

// examine examines the path to the collection at a URL.
func (o *options) examine(ctx context.Context, url string, r *report) error {
	e, err := o.newExamination(url, r)
	if err != nil {
		return err
	}
	defer e.close()
	e.examine(ctx)
	return ctx.Err()
}
