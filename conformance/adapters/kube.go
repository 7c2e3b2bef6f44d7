package adapters

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A KubeServer is a server under test that has the Kubernetes API. The caller must close it.
type KubeServer struct {
	// Target is the target for the conformance cases.
	Target harness.Target

	// Immutable after Kube has returned.
	options  Options
	header   http.Header // the header of the cases' requests
	rest     *restClient
	resource resource
	// run identifies this run, and is part of the name of each object that it creates.
	run string
	// createsNamespaces reports whether namespaces must be created before they are used.
	createsNamespaces bool
	// definition is the name of the CustomResourceDefinition of this run. It is empty if
	// there is none.
	definition string

	namespaces atomic.Int64 // number of namespaces used so far

	mu sync.Mutex
	// open contains the namespaces in use, including the namespaces of interrupted cases. It is
	// guarded by mu.
	open map[string]bool
}

// Kube returns a target for the server at base. Each case works on the objects of one
// resource in its own namespace. Kube creates and deletes namespaces if the server has
// them.
//
// resource is a name such as widgets.v1.demo.example.com, or empty. If it is empty, Kube uses
// ConfigMaps. If the server has no ConfigMaps, or a controller writes one into every namespace,
// Kube creates a CustomResourceDefinition instead, which Close removes. The server must preserve a
// spec with a string phase and a number n in its objects.
//
// An unreachable server, an unknown resource and missing permissions are errors.
func Kube(ctx context.Context, base, resource string, a Options) (*KubeServer, error) {
	u, err := parseURL(base)
	if err != nil {
		return nil, err
	}
	c := &KubeServer{
		options: a, header: a.Header, rest: newREST(u, a), open: map[string]bool{},
		run: "conformance-" + strings.ToLower(rand.Text()[:6]),
	}
	if err := c.prepare(ctx, resource); err != nil {
		return nil, errors.Join(untestable(base, err), c.Close())
	}
	return c, nil
}

func (k *KubeServer) prepare(ctx context.Context, resource string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	if err := k.chooseResource(ctx, resource); err != nil {
		return err
	}
	k.Target = harness.Target{
		Name: k.rest.base.Host, Patience: k.options.Timeout, Open: k.openInstance,
		Abilities: harness.Writes | harness.SoleWriter | harness.KubernetesPaths,
		Ping:      func(ctx context.Context) error { return ping(ctx, k.rest.base) },
		Notes:     []string{"the cases use the resource " + k.resource.String()},
	}
	if k.options.History.Restart != "" {
		k.Target.Abilities |= harness.Restarts
	}
	if k.options.History != (History{}) {
		k.Target.Abilities |= harness.Compacts
	}
	if k.definition != "" {
		k.Target.Abilities |= harness.FieldSelectors
		k.Target.Notes[0] += ", a custom resource created for this run"
	}
	// Probe the variants in a namespace, because the cases will watch namespaces.
	namespace := k.nextNamespace()
	if err := k.createNamespace(ctx, namespace); err != nil {
		return err
	}
	instance := k.instanceIn(namespace)
	err := errors.Join(probeVariants(ctx, &k.Target, instance), k.deleteNamespace(ctx, namespace))
	k.header = instance.Header
	return err
}

// Close removes everything that the run created, including the namespaces of interrupted cases.
func (k *KubeServer) Close() error {
	defer k.rest.close()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	k.mu.Lock()
	left := slices.Collect(maps.Keys(k.open))
	k.mu.Unlock()
	if len(left) > 0 || k.definition != "" {
		if err := ping(ctx, k.rest.base); err != nil {
			return &listwatch.Error{
				Code:    listwatch.Unavailable,
				Message: "the server no longer responds; objects that the run " + k.run + " created may be left",
				Err:     err,
			}
		}
	}
	var errs []error
	for _, namespace := range left {
		errs = append(errs, k.deleteNamespace(ctx, namespace))
	}
	return errors.Join(append(errs, k.removeDefinition(ctx))...)
}

// chooseResource determines the resource to work on.
func (k *KubeServer) chooseResource(ctx context.Context, name string) error {
	core, err := k.discover(ctx, resource{version: "v1", plural: "namespaces"})
	if err != nil && !errors.Is(err, listwatch.NotFound) {
		return err
	}
	k.createsNamespaces = core != nil
	if name != "" {
		return k.useResource(ctx, name)
	}
	found, err := k.discover(ctx, resource{version: "v1", plural: "configmaps"})
	switch {
	case err != nil && !errors.Is(err, listwatch.NotFound):
		return err
	case found == nil || k.publishesCA(ctx):
		return k.define(ctx)
	}
	k.resource = *found
	return nil
}

// publishesCA reports whether a controller writes a ConfigMap into every namespace, as
// kube-controller-manager does.
func (k *KubeServer) publishesCA(ctx context.Context) bool {
	return k.rest.do(ctx, "GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", nil, nil, nil) == nil
}

func (k *KubeServer) useResource(ctx context.Context, name string) error {
	r, err := parseResource(name)
	if err != nil {
		return err
	}
	found, err := k.discover(ctx, r)
	switch {
	case err != nil:
		return err
	case found == nil:
		return invalidf("the server has no resource %s", r)
	case !found.namespaced:
		return invalidf("%s has no namespaces, but each case needs its own: use another resource", r)
	}
	k.resource = *found
	return nil
}

// discover returns r with the properties that the server reports, or nil if the server has
// no such resource.
func (k *KubeServer) discover(ctx context.Context, r resource) (*resource, error) {
	// The response is an APIResourceList (Kubernetes, "The Kubernetes API", Discovery).
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if err := k.rest.do(ctx, "GET", r.apiPath(), nil, nil, &list); err != nil {
		return nil, err
	}
	for _, found := range list.Resources {
		if found.Name == r.plural {
			r.kind, r.namespaced = found.Kind, found.Namespaced
			return &r, nil
		}
	}
	return nil, nil
}
