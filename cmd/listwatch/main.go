// Command listwatch serves, lists and watches versioned collections.
//
//	listwatch serve            # a server on 127.0.0.1:8080, which prints commands to try
//	listwatch relay --upstream http://127.0.0.1:8080 --resource pods
//	listwatch watch pods -A    # the current state, then every change
//	listwatch get pods -A
//	listwatch bench pods       # latency and throughput
//	listwatch conformance server --kube http://127.0.0.1:8080
//
// The exit code is 0 on success, 1 after a failure, 2 if the command line is invalid, 3 if
// a conformance target cannot be tested, and 4 if stored data cannot be served: the file is
// not a database, damaged, read-only, or of a newer version.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the program
	os.Exit(cli.Execute(ctx, newRoot(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
