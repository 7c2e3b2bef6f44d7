// Command listwatch serves collections that can be listed and watched, and lists and watches them.
//
//	listwatch serve            # a server on 127.0.0.1:8080, which says what to try; --data FILE keeps what it is given
//	listwatch relay --upstream http://127.0.0.1:8080 --resource pods
//	listwatch watch pods -A    # the state, then every change
//	listwatch get pods -A
//	listwatch conformance server --kube http://127.0.0.1:8080
//
// It exits with 0 where all went well, 1 where it failed, 2 where the command line can't be understood, 3 where there was nothing that conformance
// could test, and 4 where what is stored can't be served: a file that is foreign, damaged, of a newer version or read-only.
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
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	os.Exit(cli.Execute(ctx, newRoot(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
