package readcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/spf13/pflag"
)

// collectionFlags contains the flags that select the objects to list or watch.
type collectionFlags struct {
	remote.Connection
	namespace     string
	allNamespaces bool
	labels        string
	fields        string
	projection    string
	version       string
	output        string
}

func (c *collectionFlags) addFlags(f *pflag.FlagSet) {
	c.Connection.AddFlags(f)
	f.StringVarP(&c.namespace, "namespace", "n", "default", "`namespace` of the objects")
	f.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "select objects of all namespaces")
	f.StringVarP(&c.labels, "selector", "l", "", "label `selector`, such as app=web,tier!=test")
	f.StringVar(&c.fields, "field-selector", "", "field `selector`, such as metadata.name=one")
	f.StringVar(&c.projection, "fields", "",
		"`members` to show, such as metadata.labels,status.phase or -metadata.managedFields; if empty, all.\n"+
			"Changes of other members are no events")
	f.StringVarP(&c.output, "output", "o", "", "output `format`: json, name or wide; if empty, a line of text")
}

const collectionHelp = `The first argument is the URL of a collection, or a resource of --server: pods,
services, configmaps, deployments, namespaces, events, one of their short names,
or a full name such as widgets.v1.demo.example.com. The second argument is the
name of a single object.`

// A collection holds the URL and the query that the arguments and flags describe.
type collection struct {
	url         string
	query       listwatch.Query
	conflate    string // the parameter of the URL
	description string // for messages
	// anyNamespace reports whether objects of several namespaces are possible.
	anyNamespace bool
}

// key identifies what t selects.
func (c *collection) key() string {
	q := c.query
	return fmt.Sprintf("%s %q %q %q %q %q", c.url, q.Namespace, q.Name, q.Labels, q.Fields, q.Projection)
}

func (c *collectionFlags) parse(ctx context.Context, args []string, f *pflag.FlagSet) (*collection, error) {
	switch c.output {
	case "", "json", "name", "wide":
	default:
		return nil, cli.Usagef("-o %q: must be json, name or wide", c.output)
	}
	t := &collection{}
	err := c.locate(ctx, t, args, f)
	if err != nil {
		return nil, err
	}
	if t.query.Labels, err = listwatch.ParseLabelSelector(c.labels); err != nil {
		return nil, cli.UsageError(err)
	}
	if t.query.Fields, err = listwatch.ParseFieldSelector(c.fields); err != nil {
		return nil, cli.UsageError(err)
	}
	if t.query.Projection, err = listwatch.ParseProjection(c.projection); err != nil {
		return nil, cli.UsageError(err)
	}
	if c.version == "" {
		return t, nil
	}
	if t.query.Version, err = listwatch.ParseVersion(c.version); err != nil {
		return nil, cli.Usagef("--resource-version: %w", err)
	}
	t.query.Start = listwatch.StartAt
	if t.query.Version == 0 {
		t.query.Start = listwatch.StartAny
	}
	return t, nil
}

// locate determines the URL from the arguments.
func (c *collectionFlags) locate(ctx context.Context, t *collection, args []string, f *pflag.FlagSet) error {
	what := args[0]
	if kind, name, ok := strings.Cut(what, "/"); ok && len(args) == 1 {
		if _, known := kubeapi.FindResource(kubeapi.DefaultResources(), kind); known {
			args, what = []string{kind, name}, kind
		}
	}
	if strings.Contains(what, "/") {
		if len(args) > 1 {
			return cli.Usagef("name %q: not allowed after a URL; use --field-selector metadata.name=%[1]s", args[1])
		}
		for _, name := range []string{"namespace", "all-namespaces", "server"} {
			if f.Changed(name) {
				return cli.Usagef("--%s: not allowed with a URL", name)
			}
		}
		return c.locateURL(t, what)
	}
	r, known, err := remote.FindResource(what)
	if err != nil {
		return err
	}
	base, err := remote.ParseURL(c.Server)
	if err != nil {
		return err
	}
	if !known && !c.allNamespaces {
		r.Namespaced = c.IsNamespaced(ctx, base, r)
	}
	namespace := c.namespace
	if c.allNamespaces || !r.Namespaced {
		namespace = ""
	}
	if err := listwatch.CheckNamespace(namespace); namespace != "" && err != nil {
		return cli.UsageError(err)
	}
	if namespace == "" && f.Changed("namespace") && c.allNamespaces {
		return cli.Usagef("set either -n or -A, not both")
	}
	t.url = base.JoinPath(r.Path(namespace)).String()
	t.description, t.anyNamespace = r.QualifiedName(), namespace == "" && r.Namespaced
	if len(args) > 1 {
		t.query.Name = args[1]
	}
	return nil
}

// locateURL accepts a URL copied from a curl command. If the flag --resource-version is not
// set, the resourceVersion of the URL is used.
func (c *collectionFlags) locateURL(t *collection, text string) error {
	u, err := remote.ParseURL(text)
	if err != nil {
		return err
	}
	if v := u.Query().Get("resourceVersion"); c.version == "" {
		c.version = v
	}
	t.url, t.description, t.anyNamespace = u.String(), u.Path, true
	t.conflate = u.Query().Get("conflate")
	return nil
}
