package conformancecmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/kubeconfig"
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
	history                     adapters.History
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
the control hook; see docs/conformance-hook.md.

Level 1 also needs a server that loses its history. With --kube and
--kubeconfig, --compact and --restart let the suite bring that about.`,
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
	f.StringVar(&o.resource, "resource", "",
		"`resource` to work on, such as widgets.v1.demo.example.com; if empty, configmaps")
	f.StringVar(&o.history.CompactURL, "compact", "",
		"`URL` at which a POST drops the history of the server of --kube or --kubeconfig")
	f.StringVar(&o.history.Restart, "restart", "",
		"shell `command` that restarts the server of --kube or --kubeconfig; without --compact it must also drop the history")
	f.StringVar(&o.Token, "token", "", "bearer `token`")
	f.StringArrayVar(&o.headers, "header", nil,
		"`header` to add to every request, such as \"Origin: https://example.com\" (repeatable)")
	f.StringVar(&o.CA, "ca", "", "PEM `file` with the CAs to trust; if empty, the CAs of the system")
	f.StringVar(&o.Cert, "cert", "", "PEM `file` with a client certificate")
	f.StringVar(&o.Key, "key", "", "PEM `file` with the key of --cert")
	f.BoolVar(&o.SkipVerify, "insecure", false, "do not verify the certificate of the server")
	o.suiteOptions.addFlags(f)
	o.addWatchFlag(f)
	return cmd
}

// A closableTarget is a target together with a function that releases its resources after the run.
type closableTarget struct {
	conformance.Target
	close func() error
}

func (s *serverOptions) conform(ctx context.Context, f *pflag.FlagSet, out, notes io.Writer) error {
	all, err := s.options(harness.Server)
	if err != nil {
		return err
	}
	if err := s.check(f); err != nil {
		return err
	}
	command := s.command(f)
	return s.repeat(ctx, all, out, func(all conformance.Options) error { return s.once(ctx, all, command, out, notes) })
}

// once opens the target and tests the server. command is the command line that repeats the run.
func (s *serverOptions) once(
	ctx context.Context, all conformance.Options, command []string, out, notes io.Writer,
) error {
	t, err := s.open(ctx, notes)
	if err != nil {
		return err
	}
	defer func() {
		if err := t.close(); err != nil {
			fmt.Fprintf(notes, "listwatch: could not remove everything that the run created: %s\n", cli.OneLine(err))
		}
	}()
	return s.execute(ctx, t.Target, all, command, out)
}

// check returns an error for flags that contradict each other.
func (s *serverOptions) check(f *pflag.FlagSet) error {
	n := 0
	for _, name := range []string{"url", "kube", "kubeconfig", "exec"} {
		if f.Changed(name) {
			n++
		}
	}
	switch {
	case n != 1:
		return cli.Usagef("set exactly one of --url, --kube, --kubeconfig and --exec")
	case s.resource != "" && s.kube == "" && s.kubeconfig == "":
		return cli.Usagef("--resource requires --kube or --kubeconfig")
	case s.history != (adapters.History{}) && s.kube == "" && s.kubeconfig == "":
		return cli.Usagef("--compact and --restart require --kube or --kubeconfig, because the cases that need them write objects")
	case s.exec != "" && (s.Token != "" || s.CA != "" || s.Cert != "" || s.SkipVerify || len(s.headers) > 0):
		return cli.Usagef("--exec: remove the flags for credentials; the command describes how to reach its server")
	}
	return nil
}

func (s *serverOptions) open(ctx context.Context, notes io.Writer) (*closableTarget, error) {
	nothing := func() error { return nil }
	a, err := s.adapterOptions()
	if err != nil {
		return nil, err
	}
	switch {
	case s.url != "":
		t, err := adapters.URL(ctx, s.url, a)
		if err != nil {
			return nil, targetError(err)
		}
		return &closableTarget{t, nothing}, nil
	case s.exec != "":
		server, err := adapters.ExecServer(ctx, s.exec, notes, s.timeout)
		if err != nil {
			return nil, targetError(err)
		}
		return &closableTarget{server.Target, server.Close}, nil
	}
	base := s.kube
	if s.kubeconfig != "" {
		c, err := kubeconfig.Read(s.kubeconfig, a.TLS)
		if err != nil {
			return nil, targetError(err)
		}
		base, a.TLS = c.Server, c.TLS
		maps.Copy(a.Header, c.Header)
	}
	c, err := adapters.Kube(ctx, base, s.resource, a)
	if err != nil {
		return nil, targetError(err)
	}
	return &closableTarget{c.Target, c.Close}, nil
}

func (s *serverOptions) adapterOptions() (adapters.Options, error) {
	a := adapters.Options{Header: http.Header{}, Timeout: s.timeout, History: s.history}
	var err error
	if a.TLS, err = s.TLSConfig(); err != nil {
		return a, err
	}
	for _, line := range s.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return a, cli.Usagef("--header %q: want NAME: VALUE", line)
		}
		a.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if s.Token != "" {
		a.Header.Set("Authorization", "Bearer "+s.Token)
	}
	return a, nil
}

// command returns the command line that repeats the run, without secrets.
func (s *serverOptions) command(f *pflag.FlagSet) []string {
	words := []string{"listwatch", "conformance", "server"}
	for _, name := range []string{
		"url", "kube", "kubeconfig", "exec", "resource", "compact", "restart", "ca", "cert", "key",
	} {
		if f.Changed(name) {
			words = append(words, "--"+name, f.Lookup(name).Value.String())
		}
	}
	if s.Token != "" {
		words = append(words, "--token", "$TOKEN")
	}
	for _, line := range s.headers {
		name, _, _ := strings.Cut(line, ":")
		words = append(words, "--header", name+": …")
	}
	if s.SkipVerify {
		words = append(words, "--insecure")
	}
	return words
}
