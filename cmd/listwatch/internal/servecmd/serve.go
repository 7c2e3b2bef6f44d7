package servecmd

import (
	"github.com/spf13/cobra"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/watchserver"
)

// New returns the command listwatch serve.
func New() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve collections at the paths of Kubernetes' API",
		Long: `Serve collections at the paths of Kubernetes' API over HTTP/1.1, HTTP/2 and
WebSocket. The server prints commands to try.

Clients write objects with POST, PUT, PATCH and DELETE, and watch them with
GET and ?watch=true. kubectl --server works, too; see docs/kubernetes.md. Web
pages import /js/listwatch.js; see docs/browsers.md.

Objects are in memory and lost when the server ends. With --data FILE they are
in a file, together with their history: after a restart or a crash, watches
resume where they were. With --etcd URL they are in etcd, which several servers
can share. So can several servers with --postgres URL, and with --table NAME
they show a table of PostgreSQL; see docs/postgres.md.

On a loopback address, anonymous clients have full access unless --token-file
or --oidc-issuer is set. --client-ca applies to https only. On other addresses
the server refuses to start without credentials, unless --insecure is set.

--config reads all flags from a YAML file, and --print-config prints one.
Certificates, tokens and the policy are read again when they change, and on
SIGHUP.

The first SIGINT or SIGTERM ends all watches cleanly. The second kills the
server.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if done, err := o.Config.Apply(cmd.Flags(), cmd.OutOrStdout()); done || err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.AddFlags(f, "127.0.0.1:8080", "POST /debug/compact")
	f.StringArrayVar(&o.resources, "resource", nil,
		"additional `resource`, such as widgets.v1.demo.example.com=Widget; append ,cluster if it has no namespaces (repeatable)")
	f.TextVar(&o.shared, "shared-compression", watchserver.ShareNever,
		"`watches` to compress with the history of their events: never, namespace (watches of one namespace), always, or initial "+
			"(the initial events only, in blocks); it saves most of the bytes, but can disclose objects to users who write to the same watch; never for Secrets")
	f.StringArrayVar(&o.crds, "crd", nil,
		"`file` or directory with CustomResourceDefinitions in YAML or JSON, each of which declares a resource (repeatable)")
	f.StringArrayVar(&o.ttls, "ttl", nil,
		"`RESOURCE=TTL` after which an object of the resource is deleted unless it is written or renewed; the TTL is a duration, "+
			"as in events=1h, or the path of a number of seconds, as in leases.coordination.k8s.io=spec.leaseDurationSeconds (repeatable)")
	o.store.register(f)
	o.postgres.register(f)
	o.maxBody = kubeapi.DefaultMaxBodyBytes
	f.Var(&o.maxBody, "max-body-bytes", "maximum `size` of an object or patch; a negative value means no limit")
	f.BoolVar(&o.demo, "demo", false, "change some objects continuously")
	return cmd
}
