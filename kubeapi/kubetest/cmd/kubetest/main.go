// Command kubetest serves a Kubernetes API for kubectl and for an operator that runs on the same
// machine. It has the resources, the garbage collection and the namespaces of package kubetest, and
// starts within a second. Everything is in memory.
//
//	go run github.com/listwatch/listwatch/kubeapi/kubetest/cmd/kubetest --crd config/crd/bases
//
// It prints the path of a kubeconfig file, and commands to try.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the program
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "kubetest:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, logs io.Writer) error {
	var o kubetest.Options
	var addr, kubeconfig string
	flags := flag.NewFlagSet("kubetest", flag.ContinueOnError)
	flags.SetOutput(logs)
	flags.Func("crd", "`file` or directory with CustomResourceDefinitions (repeatable)", func(path string) error {
		o.CRDs = append(o.CRDs, path)
		return nil
	})
	flags.Func("webhook-config", "`file` or directory with the configurations of admission webhooks and policies "+
		"(repeatable)", func(path string) error {
		o.Webhooks = append(o.Webhooks, path)
		return nil
	})
	flags.StringVar(&o.WebhookServer, "webhook", "",
		"`URL` of the operator's server of the webhooks that are services, such as https://127.0.0.1:9443")
	flags.StringVar(&addr, "addr", "127.0.0.1:0", "`address` to serve on; every client that reaches it is an administrator")
	flags.StringVar(&kubeconfig, "kubeconfig", "",
		"`file` for the configuration of clients; if empty, it is in a temporary directory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if kubeconfig == "" {
		dir, err := os.MkdirTemp("", "kubetest-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // at the end, no client reads it
		kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return kubetest.Serve(ctx, l, kubeconfig, o, log.New(logs, "", log.LstdFlags), func() {
		fmt.Fprintf(out, quickstart, l.Addr(), kubeconfig)
	})
}

const quickstart = `Serving a Kubernetes API on http://%s. Try in another terminal:

  export KUBECONFIG=%s
  kubectl api-resources
  kubectl create namespace one
  kubectl get crds,namespaces
  kubectl auth can-i --list --as=system:serviceaccount:one:default

An operator that you start there uses this cluster, too.
`
