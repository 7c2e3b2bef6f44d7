package kubetest

import (
	"context"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// admissionKinds are the kinds that configure the admission of objects.
var admissionKinds = []string{
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// newChain returns the admission chain of a.
func newChain(a *api) (*admission.Chain, error) {
	c := &admission.Chain{Cluster: objectsOf{a}, Authorizer: authorized{a.authority}}
	c.Webhooks.Mux = http.NewServeMux()
	if a.options.WebhookServer == "" {
		return c, nil
	}
	var err error
	c.Webhooks.Server, err = url.Parse(a.options.WebhookServer)
	return c, err
}

// objectsOf are the objects of an api, as [admission.Cluster].
type objectsOf struct{ *api }

// Get implements [admission.Cluster].
func (o objectsOf) Get(resource string, key listwatch.Key) (*listwatch.Object, error) {
	return o.named(resource).Collection.Get(context.Background(), key)
}

// List implements [admission.Cluster].
func (o objectsOf) List(resource, namespace string) []*listwatch.Object {
	// The store is in memory, so this cannot fail.
	page, _ := o.named(resource).Source.List(context.Background(),
		listwatch.Query{Selection: listwatch.Selection{Namespace: namespace}})
	return page.Items
}

// Find implements [admission.Cluster].
func (o objectsOf) Find(is func(*kubeapi.Resource) bool) (all []kubeapi.Resource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.versions {
		if r := &o.versions[i].Resource; is(r) {
			all = append(all, *r)
		}
	}
	return all
}

// configured returns a function that is called after each write to r, or nil if none is needed.
func configured(a *api, r kubeapi.Resource) func(o *listwatch.Object, deleted bool) {
	written := a.chain.Configured(r)
	if r.Kind != "ValidatingAdmissionPolicy" {
		return written
	}
	return func(o *listwatch.Object, deleted bool) {
		written(o, deleted)
		if deleted {
			return
		}
		// The store is in memory. If the policy has been deleted, nothing is left to do.
		_, _ = a.named(r.QualifiedName()).Collection.Update(context.Background(), o.Key, listwatch.Preconditions{},
			func(old *listwatch.Object) ([]byte, error) { return a.chain.CheckTypes(old.Data) })
	}
}

// authorized is the authorizer of expressions. It decides by the roles of the Env.
type authorized struct{ *authority }

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (a authorized) Authorize(
	ctx context.Context, q authorizer.Attributes,
) (authorizer.Decision, string, error) {
	attributes := kubeapi.Attributes{Verb: q.GetVerb(), Path: q.GetPath()}
	if q.IsResourceRequest() {
		attributes = kubeapi.Attributes{
			Verb: q.GetVerb(), Subresource: q.GetSubresource(), Namespace: q.GetNamespace(), Name: q.GetName(),
			Resource: kubeapi.Resource{
				Group: q.GetAPIGroup(), Version: q.GetAPIVersion(), Plural: q.GetResource(),
			},
		}
	}
	user := kubeapi.User{Name: q.GetUser().GetName(), Groups: q.GetUser().GetGroups()}
	if err := a.authorize(ctx, user, attributes); err != nil {
		return authorizer.DecisionNoOpinion, err.Error(), nil
	}
	return authorizer.DecisionAllow, "", nil
}
