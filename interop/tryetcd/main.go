// Command tryetcd runs an etcd with one or more members in one process, for a trial of
// `listwatch serve --etcd` without an installed etcd:
//
//	cd interop && go run ./tryetcd [--data DIR] [--client URL] [--members 3] [--retention 1h]
//
// It prints the command that serves from this etcd, and exits on SIGINT or SIGTERM. It is in this
// module so that users of the library do not get etcd's server as a dependency.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the program
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code: 1 if etcd fails, 2 if the flags are invalid.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("tryetcd", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.dataDir, "data", "",
		"the `directory` of the data, which is created if necessary (default: a temporary directory)")
	f.StringVar(&o.clientURL, "client", defaultClient,
		"the `URL` for clients, with http and a loopback address; each of several members uses the next two ports")
	f.IntVar(&o.members, "members", 1, "the `number` of members: 1, 3, 5 or 7")
	f.DurationVar(&o.retention, "retention", 5*time.Minute,
		"the `time` for which etcd keeps old revisions; kube-apiserver keeps them for 5m")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // Parse has printed the error
	case f.NArg() > 0:
		fmt.Fprintf(stderr, "tryetcd: unexpected argument %q; see --help\n", f.Arg(0))
		return 2
	}
	if err := o.check(); err != nil {
		fmt.Fprintln(stderr, "tryetcd:", err)
		return 2
	}
	if err := o.serve(ctx, stdout); err != nil {
		fmt.Fprintln(stderr, "tryetcd:", err)
		return 1
	}
	return 0
}
