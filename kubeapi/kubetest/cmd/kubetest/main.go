// Command kubetest serves a Kubernetes API for kubectl and for an operator that runs on the same
// machine. It has the resources, the garbage collection and the namespaces of package kubetest, and
// starts within a second. Everything is in memory.
//
//	go run github.com/listwatch/listwatch/kubeapi/kubetest/cmd/kubetest --crd config/crd/bases
//
// It prints the path of a kubeconfig file, and commands to try.
package main

import (
	"cmp"
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

// settings are the settings of the command line.
type settings struct {
	kubetest.Options
	addr, kubeconfig, certs string
}

// parse returns the settings of the arguments args.
func parse(args []string, logs io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("kubetest", flag.ContinueOnError)
	flags.SetOutput(logs)
	paths := func(name string, to *[]string, content string) {
		flags.Func(name, "`file` or directory with "+content+" (repeatable)", func(path string) error {
			*to = append(*to, path)
			return nil
		})
	}
	paths("crd", &s.CRDs, "CustomResourceDefinitions")
	paths("object", &s.Objects, "objects that exist from the start, such as roles")
	paths("webhook-config", &s.Webhooks, "the configurations of admission webhooks and policies")
	flags.StringVar(&s.WebhookServer, "webhook", "",
		"`URL` of the operator's server of the webhooks that are services, such as https://127.0.0.1:9443")
	flags.StringVar(&s.certs, "webhook-certs", "",
		"`directory` for the certificate of the operator's webhook server; files that are there remain; "+
			"managers look in "+managerCerts+" by default; if empty, it is a temporary directory")
	flags.BoolVar(&s.NoGarbageCollection, "no-garbage-collection", false,
		"keep objects whose owners have been deleted or never existed, as envtest does")
	flags.BoolVar(&s.NoNamespaceDeletion, "no-namespace-deletion", false,
		"keep deleted namespaces in phase Terminating, with their objects, as envtest does")
	flags.BoolVar(&s.NoFinalizers, "no-finalizers", false, "let no finalizer delay a delete")
	flags.BoolVar(&s.ManagedFields, "managed-fields", false,
		"keep managedFields from the creation of an object on, not only from its first apply on")
	flags.StringVar(&s.addr, "addr", "127.0.0.1:0",
		"`address` to serve on; every client that reaches it is an administrator")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "",
		"`file` for the configuration of clients; if empty, it is in a temporary directory")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, logs io.Writer) error {
	s, err := parse(args, logs)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "kubetest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // at the end, no client reads it
	s.kubeconfig = cmp.Or(s.kubeconfig, filepath.Join(temporary, "kubeconfig"))
	s.certs = cmp.Or(s.certs, filepath.Join(temporary, "webhook-certs"))
	if s.WebhookServer != "" {
		if err := writeCertificate(s.certs); err != nil {
			return err
		}
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	return kubetest.Serve(ctx, l, s.kubeconfig, s.Options, log.New(logs, "", log.LstdFlags), func() {
		fmt.Fprintf(out, quickstart, l.Addr(), s.kubeconfig)
		if s.WebhookServer != "" {
			fmt.Fprintf(out, webhookHint, s.WebhookServer, s.certs)
		}
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

const webhookHint = `
Webhooks are called at %s. Start the operator with a certificate for its server:

  go run ./cmd --webhook-cert-path=%s
`
