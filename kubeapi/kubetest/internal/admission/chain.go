// Package admission runs the admission webhooks and policies of a cluster, with the packages of
// kube-apiserver.
//
// chain.go admits the writes to a resource. request.go describes the request, and objects.go the
// objects. hooks.go selects and calls webhooks, mutatinghooks.go one after the other, and
// validatinghooks.go all at once. policies.go compiles policies. listers.go gives Kubernetes'
// packages what they find through informers elsewhere.
package admission

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/webhooks"
	"github.com/listwatch/listwatch/store"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/configuration"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

type (
	validatingSet = set[admissionv1.ValidatingWebhookConfiguration]
	mutatingSet   = set[admissionv1.MutatingWebhookConfiguration]
)

// A Cluster has the objects that admission depends on.
type Cluster interface {
	// Get returns an object of the resource with the given qualified name.
	Get(resource string, key listwatch.Key) (*listwatch.Object, error)
	// List returns the objects of a resource in a namespace, or in all namespaces.
	List(resource, namespace string) []*listwatch.Object
	// Find returns the resources for which is returns true. Each served version of a resource is a
	// resource of its own. is must not change a resource.
	Find(is func(*kubeapi.Resource) bool) []kubeapi.Resource
}

// find returns the resource of a kind.
func find(c Cluster, kind schema.GroupVersionKind) (r kubeapi.Resource, found bool) {
	all := c.Find(func(r *kubeapi.Resource) bool {
		return r.Kind == kind.Kind && r.Version == kind.Version && r.Group == kind.Group
	})
	if len(all) == 0 {
		return kubeapi.Resource{}, false
	}
	return all[0], true
}

// A Chain admits writes. Its fields must not be changed after the first write.
type Chain struct {
	Cluster Cluster
	// Webhooks calls the webhooks that are services.
	Webhooks webhooks.Transport
	// Authorizer is the authorizer of expressions.
	Authorizer authorizer.UnconditionalAuthorizer

	validating       validatingSet
	mutating         mutatingSet
	policies         set[admissionv1.ValidatingAdmissionPolicy]
	bindings         set[admissionv1.ValidatingAdmissionPolicyBinding]
	mutations        set[admissionv1.MutatingAdmissionPolicy]
	mutationBindings set[admissionv1.MutatingAdmissionPolicyBinding]
	// plugins is nil until there is a configuration.
	plugins atomic.Pointer[plugins]
}

// plugins are the admission plugins of kube-apiserver.
type plugins struct {
	mutating   []mutatingPlugin
	validating []validatingPlugin
}

// A plugin applies to some requests. Most requests are for objects that no webhook and no policy
// selects. These objects need not be decoded.
type plugin interface {
	// mayApply reports whether the plugin may apply to a request. a has no objects.
	mayApply(a admission.Attributes, o admission.ObjectInterfaces) bool
}

type mutatingPlugin interface {
	admission.MutationInterface
	plugin
}

type validatingPlugin interface {
	admission.ValidationInterface
	plugin
}

// anyMayApply reports whether one of the plugins may apply to a write of data that replaces old,
// which may be nil.
func anyMayApply[P plugin](all []P, q request, o objects, old *listwatch.Object, data []byte) bool {
	namespace, name := q.names(o, data)
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	a := admission.NewAttributesRecord(
		nil, nil, o.kind(), namespace, name, o.plural(), q.subresource, operation, nil, false, nil)
	return slices.ContainsFunc(all, func(p P) bool { return p.mayApply(a, o) })
}

// Configured returns a function that is called after each write to r, or nil if the objects of r
// configure no admission.
func (c *Chain) Configured(r kubeapi.Resource) func(o *listwatch.Object, deleted bool) {
	changed := map[string]func(*listwatch.Object, bool) error{
		"ValidatingWebhookConfiguration":   configured(&c.validating, adaptValidating),
		"MutatingWebhookConfiguration":     configured(&c.mutating, adaptMutating),
		"ValidatingAdmissionPolicy":        configured(&c.policies),
		"ValidatingAdmissionPolicyBinding": configured(&c.bindings),
		"MutatingAdmissionPolicy":          configured(&c.mutations),
		"MutatingAdmissionPolicyBinding":   configured(&c.mutationBindings),
	}[r.Kind]
	if changed == nil {
		return nil
	}
	return func(o *listwatch.Object, deleted bool) {
		err := changed(o, deleted)
		if err == nil && c.plugins.Load() == nil {
			err = c.start()
		}
		if err != nil {
			panic(err) // the object has been checked, and the plugins need nothing else
		}
	}
}

// adaptValidating removes the certificates of webhooks that are services, because these are called
// in memory.
func adaptValidating(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		if config := &c.Webhooks[i].ClientConfig; config.Service != nil {
			config.CABundle = nil
		}
	}
}

// adaptMutating is like adaptValidating.
func adaptMutating(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		if config := &c.Webhooks[i].ClientConfig; config.Service != nil {
			config.CABundle = nil
		}
	}
}

// configured returns a function that notes the changes of s. The plugins see the objects as adapt
// changes them.
func configured[T any](s *set[T], adapt ...func(*T)) func(*listwatch.Object, bool) error {
	return func(o *listwatch.Object, deleted bool) error { return s.changed(o, deleted, adapt...) }
}

// start creates the plugins. If it is called twice, both results are equal.
func (c *Chain) start() error {
	clients, err := c.newClients()
	if err != nil {
		return err
	}
	mutating := c.newHooks(configuration.NewMutatingWebhookConfigurationManager(factory{c: c}, nil), clients)
	validating := c.newHooks(configuration.NewValidatingWebhookConfigurationManager(factory{c: c}, nil), clients)
	c.plugins.Store(&plugins{ // in the order of kube-apiserver
		[]mutatingPlugin{c.mutatingPolicies(), mutatingHooks{mutating}},
		[]validatingPlugin{c.validatingPolicies(), validatingHooks{validating}},
	})
	return nil
}

// Admit returns the rules own for the objects of r. They apply after the mutating and before the
// validating plugins, to complete objects; see [kubeapi.Resource.Complete].
func (c *Chain) Admit(r kubeapi.Resource, own rules.Admit) rules.Admit {
	o := objects{resource: &r, cluster: c.Cluster}
	return func(ctx context.Context, old *listwatch.Object, data []byte) (_ []byte, err error) {
		q, ok := ctx.Value(requestKey{}).(request)
		if q.isInternal() && r.Complete != nil {
			if data, err = r.Complete(data, false); err != nil {
				return nil, err
			}
		}
		p := c.plugins.Load()
		if !ok || p == nil || r.Group == admissionv1.GroupName {
			return own(ctx, old, data)
		}
		o := o
		if q.subresource == "scale" {
			o.part = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
		}
		if data, err = p.mutate(ctx, q, o, old, data); err != nil {
			return nil, refusal(err)
		}
		if data, err = own(ctx, old, data); err != nil {
			return nil, err
		}
		return data, refusal(p.validate(ctx, q, o, old, data))
	}
}

// Delete returns a function that admits the delete of an object of r; see [kubeapi.Deletion].
func (c *Chain) Delete(r kubeapi.Resource) func(ctx context.Context, old []byte, o metav1.DeleteOptions) error {
	objects := objects{resource: &r, cluster: c.Cluster}
	return func(ctx context.Context, old []byte, o metav1.DeleteOptions) error {
		q, ok := ctx.Value(requestKey{}).(request)
		p := c.plugins.Load()
		if !ok || p == nil || r.Group == admissionv1.GroupName {
			return nil
		}
		before, err := decode(old, objects.kind())
		if err != nil {
			return err
		}
		key := rules.KeyOf(old)
		name := key.Name
		if !q.isInternal() {
			name = q.key.Name // as in Kubernetes, a delete of a collection names no object
		}
		o.TypeMeta = optionsType("DeleteOptions")
		a := admission.NewAttributesRecord(nil, before, objects.kind(), key.Namespace, name, objects.plural(), "",
			admission.Delete, &o, len(o.DryRun) > 0, userOf(ctx))
		if err = p.callMutating(ctx, a, objects); err == nil {
			err = p.callValidating(ctx, a, objects)
		}
		return refusal(err)
	}
}

// refusal converts an error of a plugin. The collection does not change the result, because it has
// a code even if its status is 500, or one that a webhook has invented.
func refusal(err error) error {
	err = apistatus.Convert(err)
	if e, ok := errors.AsType[*listwatch.Error](err); ok && e.Code == listwatch.Unknown {
		e.Code = listwatch.Unavailable
	}
	return err
}

// Action returns the object in the body of a create of a subresource that is not a part of the
// object key of r, such as pods/eviction, as the plugins change and admit it.
func (c *Chain) Action(
	ctx context.Context, r kubeapi.Resource, key listwatch.Key, subresource string, kind schema.GroupVersionKind,
	query url.Values, body []byte,
) ([]byte, error) {
	p := c.plugins.Load()
	if p == nil {
		return body, nil
	}
	if key.Namespace != "" {
		body = jsonvalue.SetMetadata(body, "namespace", rawjson.AppendString(nil, key.Namespace))
	}
	q := request{subresource: subresource, key: key, query: query}
	o := objects{resource: &r, part: kind, cluster: c.Cluster}
	body, err := p.mutate(ctx, q, o, nil, body)
	if err == nil {
		err = p.validate(ctx, q, o, nil, body)
	}
	return body, refusal(err)
}

// mutate returns data as the mutating plugins change it.
func (p *plugins) mutate(
	ctx context.Context, q request, o objects, old *listwatch.Object, data []byte,
) ([]byte, error) {
	if !anyMayApply(p.mutating, q, o, old, data) {
		return data, nil
	}
	shown := data
	if store.IsNameGenerated(ctx) { // in a cluster, mutating plugins run before a name is generated
		shown = jsonvalue.SetMetadata(data, "name", []byte(`""`))
	}
	a, err := q.attributes(ctx, o, old, shown)
	if err != nil {
		return nil, err
	}
	before, err := encode(a.GetObject())
	if err != nil {
		return nil, err
	}
	if err := p.callMutating(ctx, a, o); err != nil {
		return nil, err
	}
	after, err := encode(a.GetObject())
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(before, after):
		return data, nil
	case o.isScale():
		return o.resource.WithScale(data, after)
	}
	if data, err = rawjson.Rebase(data, before, after); err != nil {
		return nil, err
	}
	if old != nil && apply.IsTracked(old.Data) && apply.IsUnchanged(old.Data, data) {
		return old.Data, nil
	}
	return data, nil
}

// callMutating calls the mutating plugins. If one of them asks for it, it calls them a second time.
func (p *plugins) callMutating(ctx context.Context, a admission.Attributes, o objects) error {
	for range 2 {
		for _, plugin := range p.mutating {
			if !plugin.Handles(a.GetOperation()) {
				continue
			}
			if err := plugin.Admit(ctx, a, o); err != nil {
				return err
			}
		}
		if !a.GetReinvocationContext().ShouldReinvoke() {
			break
		}
		a.GetReinvocationContext().SetIsReinvoke()
	}
	return nil
}

// validate calls the validating plugins.
func (p *plugins) validate(ctx context.Context, q request, o objects, old *listwatch.Object, data []byte) error {
	if !anyMayApply(p.validating, q, o, old, data) {
		return nil
	}
	if old != nil {
		for _, name := range []string{"uid", "creationTimestamp", "resourceVersion"} {
			if value := rawjson.Lookup(old.Data, "metadata", name); value != nil {
				data = jsonvalue.SetMetadata(data, name, value)
			}
		}
	}
	a, err := q.attributes(ctx, o, old, data)
	if err != nil {
		return err
	}
	return p.callValidating(ctx, a, o)
}

func (p *plugins) callValidating(ctx context.Context, a admission.Attributes, o objects) error {
	for _, plugin := range p.validating {
		if !plugin.Handles(a.GetOperation()) {
			continue
		}
		if err := plugin.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}

// attributes describes a write of data that replaces old, which may be nil.
func (r request) attributes(
	ctx context.Context, o objects, old *listwatch.Object, data []byte,
) (admission.Attributes, error) {
	namespace, name := r.names(o, data)
	next, err := o.decode(data)
	if err != nil {
		return nil, fmt.Errorf("the object cannot be decoded for admission: %w", err)
	}
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation = admission.Update
		if before, err = o.decode(old.Data); err != nil {
			return nil, err
		}
	}
	return admission.NewAttributesRecord(next, before, o.kind(), namespace, name, o.plural(), r.subresource,
		operation, r.options(operation), len(r.query["dryRun"]) > 0, userOf(ctx)), nil
}

// names returns the namespace and the name of the object data, which may be only in the path.
func (r request) names(o objects, data []byte) (namespace, name string) {
	key := rules.KeyOf(data)
	namespace, name = cmp.Or(key.Namespace, r.key.Namespace), cmp.Or(key.Name, r.key.Name)
	if o.resource.Group == "" && o.resource.Plural == "namespaces" {
		namespace = name // as in Kubernetes
	}
	return namespace, name
}
