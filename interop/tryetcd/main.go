// Command tryetcd is an etcd of one member, to try `listwatch serve --etcd` with, where none is installed.
//
//	cd interop && go run ./tryetcd [--data DIR] [--client URL]
//
// It prints the command that serves from it, and ends at SIGINT or SIGTERM. It is in a module of its own, so that who uses listwatch as a library does
// not get etcd's server with it.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit code: 1 where etcd does not run, 2 where the command line can't be understood.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("tryetcd", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.data, "data", "", "`directory` to keep what is written in, made where there is none; empty: one that is removed at the end")
	f.StringVar(&o.client, "client", defaultClient, "`URL` to listen at, http and an address of this machine; port 0: any that is free")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // it was said
	case f.NArg() > 0:
		fmt.Fprintf(stderr, "tryetcd: there is no argument %q; see --help\n", f.Arg(0))
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
