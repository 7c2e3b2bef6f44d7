package conformancecmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serverOptions contains the flags of conformance server.
type serverOptions struct {
	suiteOptions
	remote.Connection
	url, kube, kubeconfig, exec string
	resource                    string
	headers                     []string
}

func newConformanceServer() *cobra.Command {
	var o serverOptions
	cmd := &cobra.Command{
		Use:   "server (--url URL | --kube URL | --kubeconfig FILE | --exec COMMAND)",
		Short: "Test a server against the protocol",
		Long: `Test a server.

--url tests any URL that can be listed and watched, with the cases that do not
write. --kube and --kubeconfig test a server with Kubernetes' API: each case
uses a new namespace, and works on ConfigMaps, on the resource of --resource,
or on a custom resource created for the run. --exec runs a command that speaks
the control hook; see docs/conformance-hook.md.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.conform(cmd.Context(), cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "`URL` of a collection")
	f.StringVar(&o.kube, "kube", "", "`URL` of a server with Kubernetes' API, such as https://127.0.0.1:6443")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` with the server and its credentials")
	f.StringVar(&o.exec, "exec", "", "shell `command` that starts a server and implements the control hook")
	f.StringVar(&o.resource, "resource", "", "`resource` to work on, such as widgets.v1.demo.example.com; if empty, configmaps")
	f.StringVar(&o.Token, "token", "", "bearer `token`")
	f.StringArrayVar(&o.headers, "header", nil, "`header` to add to every request, such as \"Origin: https://example.com\" (repeatable)")
	f.StringVar(&o.CA, "ca", "", "PEM `file` with the CAs to trust; if empty, the CAs of the system")
	f.StringVar(&o.Cert, "cert", "", "PEM `file` with a client certificate")
	f.StringVar(&o.Key, "key", "", "PEM `file` with the key of --cert")
	f.BoolVar(&o.SkipVerify, "insecure", false, "do not verify the certificate of the server")
	o.suiteOptions.addFlags(f)
	return cmd
}

// A closableTarget is a target together with a function that releases its resources after the run.
type closableTarget struct {
	conformance.Target
	close func() error
}

func (o *serverOptions) conform(ctx context.Context, f *pflag.FlagSet, out, notes io.Writer) error {
	all, err := o.options(harness.Server)
	if err != nil {
		return err
	}
	if err := o.check(f); err != nil {
		return err
	}
	t, err := o.open(ctx, notes)
	if err != nil {
		return err
	}
	defer func() {
		if err := t.close(); err != nil {
			fmt.Fprintf(notes, "listwatch: could not remove everything that the run created: %s\n", cli.OneLine(err))
		}
	}()
	return o.execute(ctx, t.Target, all, o.command(f), out)
}

// check returns an error for flags that contradict each other.
func (o *serverOptions) check(f *pflag.FlagSet) error {
	n := 0
	for _, name := range []string{"url", "kube", "kubeconfig", "exec"} {
		if f.Changed(name) {
			n++
		}
	}
	switch {
	case n != 1:
		return cli.Usagef("set exactly one of --url, --kube, --kubeconfig and --exec")
	case o.resource != "" && o.kube == "" && o.kubeconfig == "":
		return cli.Usagef("--resource requires --kube or --kubeconfig")
	case o.exec != "" && (o.Token != "" || o.CA != "" || o.Cert != "" || o.SkipVerify || len(o.headers) > 0):
		return cli.Usagef("--exec: remove the flags for credentials; the command describes how to reach its server")
	}
	return nil
}

func (o *serverOptions) open(ctx context.Context, notes io.Writer) (*closableTarget, error) {
	nothing := func() error { return nil }
	a, err := o.adapterOptions()
	if err != nil {
		return nil, err
	}
	switch {
	case o.url != "":
		t, err := adapters.URL(ctx, o.url, a)
		if err != nil {
			return nil, targetError(err)
		}
		return &closableTarget{t, nothing}, nil
	case o.exec != "":
		s, err := adapters.ExecServer(ctx, o.exec, notes, o.timeout)
		if err != nil {
			return nil, targetError(err)
		}
		return &closableTarget{s.Target, s.Close}, nil
	}
	base := o.kube
	if o.kubeconfig != "" {
		if base, a, _, err = adapters.ReadKubeconfig(o.kubeconfig, a); err != nil {
			return nil, targetError(err)
		}
	}
	c, err := adapters.Kube(ctx, base, o.resource, a)
	if err != nil {
		return nil, targetError(err)
	}
	return &closableTarget{c.Target, c.Close}, nil
}

func (o *serverOptions) adapterOptions() (adapters.Options, error) {
	a := adapters.Options{Header: http.Header{}, Timeout: o.timeout}
	var err error
	if a.TLS, err = o.TLSConfig(); err != nil {
		return a, err
	}
	for _, line := range o.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return a, cli.Usagef("--header %q: want NAME: VALUE", line)
		}
		a.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if o.Token != "" {
		a.Header.Set("Authorization", "Bearer "+o.Token)
	}
	return a, nil
}

// command returns the command line that repeats the run, without secrets.
func (o *serverOptions) command(f *pflag.FlagSet) []string {
	words := []string{"listwatch", "conformance", "server"}
	for _, name := range []string{"url", "kube", "kubeconfig", "exec", "resource", "ca", "cert", "key"} {
		if f.Changed(name) {
			words = append(words, "--"+name, f.Lookup(name).Value.String())
		}
	}
	if o.Token != "" {
		words = append(words, "--token", "$TOKEN")
	}
	for _, line := range o.headers {
		name, _, _ := strings.Cut(line, ":")
		words = append(words, "--header", name+": …")
	}
	if o.SkipVerify {
		words = append(words, "--insecure")
	}
	return words
}
