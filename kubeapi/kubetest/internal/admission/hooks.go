package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	objectselector "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/pkg/warning"
)

// Kubernetes' own plugins for webhooks are not used, because each of them builds CEL environments
// for the match conditions when it is created, which takes longer than everything else in an Env.
// Here, all Envs share one compiler. All decisions are made by the packages of which the plugins
// consist, in the order of their dispatchers and with the same errors.

// hooks calls the webhooks of one type. It is immutable.
type hooks struct {
	source     generic.Source
	namespaces *namespace.Matcher
	clients    *webhookutil.ClientManager
	authorizer authorizer.UnconditionalAuthorizer
}

// conditionCompiler compiles the match conditions of webhooks.
var conditionCompiler = sync.OnceValue(func() cel.ConditionCompiler {
	return cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// newClients returns the clients of the webhooks of c.
func (c *Chain) newClients() (*webhookutil.ClientManager, error) {
	clients, err := webhookutil.NewClientManager(
		[]schema.GroupVersion{admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion},
		admissionv1beta1.AddToScheme, admissionv1.AddToScheme,
	)
	if err != nil {
		return nil, err
	}
	clients.SetServiceResolver(webhookutil.NewDefaultServiceResolver())
	clients.SetAuthenticationInfoResolverWrapper(c.Webhooks.Resolver())
	return &clients, clients.Validate()
}

// newHooks returns hooks for the webhooks of source.
func (c *Chain) newHooks(source generic.Source, clients *webhookutil.ClientManager) hooks {
	matcher := &namespace.Matcher{NamespaceLister: namespaces{c: c}, Client: client{c: c}}
	return hooks{source, matcher, clients, c.Authorizer}
}

// Handles implements [admission.Interface].
func (hooks) Handles(admission.Operation) bool { return true }

// mayApply implements [plugin].
func (h hooks) mayApply(a admission.Attributes, o admission.ObjectInterfaces) bool {
	return slices.ContainsFunc(h.source.Webhooks(), func(w webhook.WebhookAccessor) bool {
		i, err := invocation(w, a, o.GetEquivalentResourceMapper())
		return i != nil || err != nil
	})
}

// match describes the call of w for the request a, or returns nil if the request does not match w.
func (h hooks) match(
	ctx context.Context, w webhook.WebhookAccessor, a admission.Attributes, o admission.ObjectInterfaces,
	v generic.VersionedAttributeAccessor,
) (*generic.WebhookInvocation, error) {
	inNamespace, namespaceErr := h.namespaces.MatchNamespaceSelector(w, a)
	if !inNamespace && namespaceErr == nil {
		return nil, nil
	}
	selected, objectErr := new(objectselector.Matcher).MatchObjectSelector(w, a)
	if !selected && objectErr == nil {
		return nil, nil
	}
	i, err := invocation(w, a, o.GetEquivalentResourceMapper())
	switch {
	case err != nil || i == nil:
		return nil, err
	case namespaceErr != nil:
		return nil, namespaceErr
	case objectErr != nil:
		return nil, objectErr
	case len(w.GetMatchConditions()) == 0:
		return i, nil
	}
	versioned, err := v.VersionedAttribute(i.Kind)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	result := w.GetCompiledMatcher(conditionCompiler()).Match(ctx, versioned, nil, h.authorizer)
	switch {
	case result.Error != nil:
		return nil, apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), result.Error)
	case !result.Matches:
		return nil, nil
	}
	return i, nil
}

// invocation returns the resource and the kind in which the rules of w match the request a, or nil
// if they do not.
func invocation(
	w webhook.WebhookAccessor, a admission.Attributes, equivalent runtime.EquivalentResourceMapper,
) (*generic.WebhookInvocation, error) {
	i := &generic.WebhookInvocation{Webhook: w, Subresource: a.GetSubresource()}
	for _, r := range w.GetRules() {
		if m := (rules.Matcher{Rule: r, Attr: a}); m.Matches() {
			i.Resource, i.Kind = a.GetResource(), a.GetKind()
			return i, nil
		}
	}
	if p := w.GetMatchPolicy(); p == nil || *p != registration.Equivalent {
		return nil, nil
	}
	others := equivalent.EquivalentResourcesFor(a.GetResource(), a.GetSubresource())
	for _, r := range w.GetRules() { // earlier rules take precedence over earlier resources
		for _, other := range others {
			m := rules.Matcher{Rule: r, Attr: ofResource{a, other}}
			if other == a.GetResource() || !m.Matches() {
				continue
			}
			i.Resource, i.Kind = other, equivalent.KindFor(other, a.GetSubresource())
			if i.Kind.Empty() {
				return nil, apierrors.NewInternalError(fmt.Errorf("unable to convert to %v: unknown kind", other))
			}
			return i, nil
		}
	}
	return nil, nil
}

// ofResource is a request as if it were for an equivalent resource.
type ofResource struct {
	admission.Attributes
	resource schema.GroupVersionResource
}

// GetResource implements [admission.Attributes].
func (o ofResource) GetResource() schema.GroupVersionResource { return o.resource }

// call calls a webhook, and returns its response, which allows the request. The error is an
// ErrWebhookRejection if the webhook has refused the request, and an ErrCallingWebhook, to which
// the failure policy applies, if the call has failed.
func (h hooks) call(
	ctx context.Context, i *generic.WebhookInvocation, a *admission.VersionedAttributes, mutating bool,
) (*webhookrequest.AdmissionResponse, error) {
	w := i.Webhook
	if err := checkDryRun(w, a); err != nil {
		return nil, err
	}
	uid, request, response, err := webhookrequest.CreateAdmissionObjects(a, i)
	if err != nil {
		return nil, callFailed(w, fmt.Errorf("could not create admission objects: %w", err),
			apierrors.NewBadRequest("error creating admission objects"))
	}
	if err := h.send(ctx, w, request, response); err != nil {
		return nil, err
	}
	result, err := webhookrequest.VerifyAdmissionResponse(uid, mutating, response)
	if err != nil {
		return nil, callFailed(w, fmt.Errorf("received invalid webhook response: %w", err),
			apierrors.NewServiceUnavailable("error validating webhook response"))
	}
	for _, text := range result.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	if !result.Allowed {
		return nil, &webhookutil.ErrWebhookRejection{Status: webhookerrors.ToStatusErr(w.GetName(), result.Result)}
	}
	return result, nil
}

// callFailed returns the error of a call of w that has failed.
func callFailed(w webhook.WebhookAccessor, reason error, status *apierrors.StatusError) error {
	return &webhookutil.ErrCallingWebhook{WebhookName: w.GetName(), Reason: reason, Status: status}
}

// checkDryRun returns an error if the request a is a dry run, and w may have side effects.
func checkDryRun(w webhook.WebhookAccessor, a admission.Attributes) error {
	if !a.IsDryRun() {
		return nil
	}
	effects := w.GetSideEffects()
	switch {
	case effects == nil:
		err := errors.New("the webhook has no sideEffects")
		return callFailed(w, err, apierrors.NewBadRequest(err.Error()))
	case *effects != registration.SideEffectClassNone && *effects != registration.SideEffectClassNoneOnDryRun:
		return webhookerrors.NewDryRunUnsupportedErr(w.GetName())
	}
	return nil
}

// send sends a request to w, and decodes the response.
func (h hooks) send(ctx context.Context, w webhook.WebhookAccessor, request, response runtime.Object) error {
	client, err := w.GetRESTClient(h.clients)
	if err != nil {
		return callFailed(w, fmt.Errorf("could not get REST client: %w", err), apierrors.NewInternalError(err))
	}
	if seconds := w.GetTimeoutSeconds(); seconds != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*seconds)*time.Second)
		defer cancel()
	}
	q := client.Post().Body(request)
	if deadline, ok := ctx.Deadline(); ok {
		// The parameter tells the webhook how long the caller waits, in whole seconds.
		if left := time.Until(deadline); left > 0 {
			q.Timeout((left + time.Second - 1).Truncate(time.Second))
		}
	}
	if err := q.Do(ctx).Into(response); err != nil {
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok {
			status = apierrors.NewServiceUnavailable("error calling webhook")
		}
		return callFailed(w, fmt.Errorf("failed to call webhook: %w", err), status)
	}
	return nil
}

// refusedBy converts an error of call to the error of the request. It returns nil, and logs the
// error, if the failure policy of w ignores it.
func refusedBy(w webhook.WebhookAccessor, err error) error {
	if rejection, ok := errors.AsType[*webhookutil.ErrWebhookRejection](err); ok {
		return rejection.Status
	}
	if _, ok := errors.AsType[*webhookutil.ErrCallingWebhook](err); !ok {
		return err
	}
	if p := w.GetFailurePolicy(); p != nil && *p == registration.Ignore {
		utilruntime.HandleError(err)
		return nil
	}
	return apierrors.NewInternalError(err)
}

// checkTime returns an error if the time for the request is over.
func checkTime(ctx context.Context) error {
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	return nil
}
