package adapters

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/kubeapi"
)

// A Cluster is a server that speaks Kubernetes' API, on which a run works.
type KubeServer struct {
	// Target is what to run the cases on.
	Target harness.Target

	// Immutable once Kube has returned.
	access   Options
	header   http.Header // of what the cases ask
	rest     *restClient
	resource kubeapi.Resource
	// run is in every name that is made.
	run string
	// makesSpaces: namespaces are served, so that those used must be made.
	makesSpaces bool
	definition  string // name of our own CustomResourceDefinition; empty: there is none

	spaces atomic.Int64 // how many namespaces were used

	mu sync.Mutex
	// open are the namespaces that are in use; guarded by mu. A case that was interrupted leaves its own behind.
	open map[string]bool
}

// Kube returns the server at base as a target. It works on the objects of one resource, in a namespace of its own for each case: where the server
// has namespaces, it makes and deletes those; else their names are all there is. An empty resource is configmaps; where the server has none,
// or writes to every namespace of its own accord, a CustomResourceDefinition is made, and removed by Close. Others are named as in
// widgets.v1.demo.example.com; their objects get a spec, of which the server must keep phase, a string, and n, a number.
//
// A server that can't be reached, has no such resource or does not let us work on it is an error.
func Kube(ctx context.Context, base, resource string, a Options) (*KubeServer, error) {
	u, err := parseURL(base)
	if err != nil {
		return nil, err
	}
	c := &KubeServer{access: a, header: a.Header, rest: newREST(u, a), open: map[string]bool{}, run: "conformance-" + strings.ToLower(rand.Text()[:6])}
	if err := c.prepare(ctx, resource); err != nil {
		return nil, errors.Join(untestable(base, err), c.Close())
	}
	return c, nil
}

func (c *KubeServer) prepare(ctx context.Context, resource string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	if err := c.choose(ctx, resource); err != nil {
		return err
	}
	c.Target = harness.Target{
		Name: c.rest.base.Host, Patience: c.access.Timeout, Open: c.site,
		Abilities: harness.Writes | harness.SoleWriter | harness.KubernetesPaths,
		Notes:     []string{"the cases work on " + c.resource.QualifiedName()},
	}
	if c.definition != "" {
		c.Target.Abilities |= harness.FieldSelectors
		c.Target.Notes[0] += ", a custom resource of their own"
	}
	// The ways are tried where the cases will watch.
	space := c.nextSpace()
	if err := c.makeSpace(ctx, space); err != nil {
		return err
	}
	site := c.siteIn(space)
	err := errors.Join(probeVariants(ctx, &c.Target, site), c.dropSpace(ctx, space))
	c.header = site.Header
	return err
}

// Close removes what was made for the run as a whole, and what cases that did not come to their end have left.
func (c *KubeServer) Close() error {
	defer c.rest.close()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	c.mu.Lock()
	left := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	var errs []error
	for _, space := range left {
		errs = append(errs, c.dropSpace(ctx, space))
	}
	return errors.Join(append(errs, c.removeDefinition(ctx))...)
}

// choose finds the resource to work on.
func (c *KubeServer) choose(ctx context.Context, name string) error {
	core, err := c.discover(ctx, kubeapi.Resource{Version: "v1", Plural: "namespaces"})
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		return err
	}
	c.makesSpaces = core != nil
	if name != "" {
		return c.named(ctx, name)
	}
	found, err := c.discover(ctx, kubeapi.Resource{Version: "v1", Plural: "configmaps"})
	switch {
	case err != nil && !errors.Is(err, listwatch.NotFound):
		return err
	case found == nil || c.publishesCA(ctx):
		return c.define(ctx)
	}
	c.resource = *found
	return nil
}

// publishesCA reports whether something writes a ConfigMap to every namespace, as kube-controller-manager does.
func (c *KubeServer) publishesCA(ctx context.Context) bool {
	return c.rest.ask(ctx, "GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", nil, nil, nil) == nil
}

func (c *KubeServer) named(ctx context.Context, name string) error {
	r, known := kubeapi.FindResource(kubeapi.DefaultResources(), name)
	if !known {
		var err error
		if r, err = kubeapi.ParseResourceName(name); err != nil {
			return err
		}
	}
	found, err := c.discover(ctx, r)
	switch {
	case err != nil:
		return err
	case found == nil:
		return invalidf("the server has no resource %s", r.QualifiedName())
	case !found.Namespaced:
		return invalidf("%s is in no namespace, so that no case could have one of its own: name another resource", r.QualifiedName())
	}
	c.resource = *found
	return nil
}

// discover returns r as the server has it, with its kind; nil: it has no such resource.
func (c *KubeServer) discover(ctx context.Context, r kubeapi.Resource) (*kubeapi.Resource, error) {
	// An APIResourceList (Kubernetes, "The Kubernetes API", Discovery).
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if err := c.rest.ask(ctx, "GET", path.Dir(r.Path("")), nil, nil, &list); err != nil {
		return nil, err
	}
	for _, found := range list.Resources {
		if found.Name == r.Plural {
			r.Kind, r.Namespaced = found.Kind, found.Namespaced
			return &r, nil
		}
	}
	return nil, nil
}
