package admission

import (
	"context"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
)

// mutatingHooks is the plugin that calls mutating webhooks.
type mutatingHooks struct{ hooks }

// Admit implements [admission.MutationInterface]. It calls one webhook after the other.
func (m mutatingHooks) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	r := roundOf(a)
	defer func() { r.end(a) }()
	v := &lastVersion{a: a, o: o}
	for _, w := range m.source.Webhooks() {
		seen := a // with the changes of the webhooks before this one
		if v.last != nil {
			seen = v.last
		}
		i, err := m.match(ctx, w, seen, o, v)
		if err != nil {
			return err
		}
		if i == nil || a.GetReinvocationContext().IsReinvoke() && !r.due.Has(w.GetUID()) {
			continue
		}
		next, err := v.VersionedAttribute(i.Kind)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		changed, err := m.mutate(ctx, i, next, o)
		r.called(a, w, changed)
		if err == nil {
			continue
		}
		if err := refusedBy(w, err); err != nil {
			return err
		}
		if err := checkTime(ctx); err != nil {
			return err
		}
	}
	if v.last != nil && v.last.VersionedObject.Object() != nil && v.last.Dirty {
		return o.GetObjectConvertor().Convert(v.last.VersionedObject.Object(), a.GetObject(), nil)
	}
	return nil
}

// mutate calls a webhook and applies its patch to a. It reports whether the patch has changed the
// object.
func (m mutatingHooks) mutate(
	ctx context.Context, i *generic.WebhookInvocation, a *admission.VersionedAttributes, o admission.ObjectInterfaces,
) (changed bool, err error) {
	result, err := m.call(ctx, i, a, true)
	if err != nil || len(result.Patch) == 0 {
		return false, err
	}
	patch, err := jsonpatch.DecodePatch(result.Patch)
	if err != nil {
		return false, callFailed(i.Webhook, fmt.Errorf("received undecodable patch in webhook response: %w", err),
			apierrors.NewServiceUnavailable("error decoding patch in webhook response"))
	}
	before := a.VersionedObject.Object()
	switch name := i.Webhook.GetName(); {
	case len(patch) == 0:
		return false, nil
	case before == nil:
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, "+
			"which is not supported for this operation", name))
	case result.PatchType != admissionv1.PatchTypeJSONPatch:
		return false, callFailed(i.Webhook, fmt.Errorf("unsupported patch type %q", result.PatchType),
			webhookerrors.ToStatusErr(name, result.Result))
	}
	after, err := applyPatch(patch, before, a.VersionedKind, o)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	changed = !apiequality.Semantic.DeepEqual(before, after)
	a.UpdateObject(after)
	o.GetObjectDefaulter().Default(after)
	return changed, nil
}

// applyPatch returns the object, which has the given kind, as patch changes it.
func applyPatch(
	patch jsonpatch.Patch, object runtime.Object, kind schema.GroupVersionKind, o admission.ObjectInterfaces,
) (runtime.Object, error) {
	s := json.NewSerializerWithOptions(json.DefaultMetaFactory, o.GetObjectCreater(), o.GetObjectTyper(),
		json.SerializerOptions{})
	data, err := runtime.Encode(s, object)
	if err != nil {
		return nil, err
	}
	if data, err = patch.Apply(data); err != nil {
		return nil, err
	}
	var next runtime.Object = &unstructured.Unstructured{}
	if _, custom := object.(*unstructured.Unstructured); !custom {
		if next, err = o.GetObjectCreater().New(kind); err != nil {
			return nil, err
		}
	}
	next, _, err = s.Decode(data, nil, next)
	return next, err
}

// A round is a sequence of calls for one request. There are two if a webhook or a policy changes
// the object after a webhook that has the reinvocation policy IfNeeded.
type round struct {
	output   runtime.Object   // the object after the calls; nil before the first round has ended
	eligible sets.Set[string] // the UIDs of the webhooks that a later change calls again
	due      sets.Set[string] // the UIDs of the webhooks to call in the second round
}

// roundOf returns the state of the round that begins for the request a.
func roundOf(a admission.Attributes) *round {
	c := a.GetReinvocationContext()
	r, ok := c.Value(mutatingwebhook.PluginName).(*round)
	if !ok {
		r = &round{eligible: sets.New[string](), due: sets.New[string]()}
		c.SetValue(mutatingwebhook.PluginName, r)
	}
	if c.IsReinvoke() && !apiequality.Semantic.DeepEqual(r.output, a.GetObject()) {
		r.callAgain() // a policy has changed the object since
	}
	return r
}

// callAgain makes all eligible webhooks due.
func (r *round) callAgain() {
	r.due = r.due.Union(r.eligible)
	r.eligible = sets.New[string]()
}

// called notes that w was called for the request a.
func (r *round) called(a admission.Attributes, w webhook.WebhookAccessor, changed bool) {
	if changed {
		r.callAgain()
		a.GetReinvocationContext().SetShouldReinvoke()
	}
	m, ok := w.GetMutatingWebhook()
	if ok && m.ReinvocationPolicy != nil && *m.ReinvocationPolicy == registration.IfNeededReinvocationPolicy {
		r.eligible.Insert(w.GetUID())
	}
}

// end notes the object at the end of the round.
func (r *round) end(a admission.Attributes) {
	r.output = nil
	if o := a.GetObject(); o != nil {
		r.output = o.DeepCopyObject()
	}
}

// lastVersion is the object of a request, in the version that the last mutating webhook has asked
// for, with the changes of all webhooks.
type lastVersion struct {
	a    admission.Attributes
	o    admission.ObjectInterfaces
	last *admission.VersionedAttributes // nil until a webhook asks for a version
}

// VersionedAttribute implements [generic.VersionedAttributeAccessor].
func (v *lastVersion) VersionedAttribute(kind schema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	var err error
	if v.last == nil {
		v.last, err = admission.NewVersionedAttributes(v.a, kind, v.o)
	} else {
		err = admission.ConvertVersionedAttributes(v.last, kind, v.o)
	}
	if err != nil {
		// As in Kubernetes, the caller does the same again, so that the text begins with the same
		// words twice.
		return nil, apierrors.NewInternalError(err)
	}
	return v.last, nil
}
