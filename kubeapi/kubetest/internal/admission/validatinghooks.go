package admission

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
)

// validatingHooks is the plugin that calls validating webhooks.
type validatingHooks struct{ hooks }

// Validate implements [admission.ValidationInterface]. It calls all webhooks at once.
func (v validatingHooks) Validate(
	ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces,
) error {
	seen := versions{a, o, map[schema.GroupVersionKind]*admission.VersionedAttributes{}}
	var calls []*generic.WebhookInvocation
	for _, w := range v.source.Webhooks() {
		i, err := v.match(ctx, w, a, o, seen)
		if err != nil {
			return err
		}
		if i == nil {
			continue
		}
		if _, err := seen.VersionedAttribute(i.Kind); err != nil {
			return apierrors.NewInternalError(err)
		}
		calls = append(calls, i)
	}
	if len(calls) == 0 {
		return nil
	}
	if err := checkTime(ctx); err != nil {
		return err
	}
	return v.callAll(ctx, calls, seen)
}

// callAll calls webhooks at once, and returns the first error.
func (v validatingHooks) callAll(ctx context.Context, calls []*generic.WebhookInvocation, seen versions) error {
	errs := make(chan error, len(calls))
	var ended sync.WaitGroup
	for _, i := range calls {
		ended.Go(func() {
			if _, err := v.call(ctx, i, seen.known[i.Kind], false); err != nil {
				if err := refusedBy(i.Webhook, err); err != nil {
					errs <- err
				}
			}
		})
	}
	ended.Wait()
	close(errs)
	return <-errs
}

// versions are the objects of a request, in each version that a validating webhook has asked for.
type versions struct {
	a     admission.Attributes
	o     admission.ObjectInterfaces
	known map[schema.GroupVersionKind]*admission.VersionedAttributes
}

// VersionedAttribute implements [generic.VersionedAttributeAccessor].
func (v versions) VersionedAttribute(kind schema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	if known, ok := v.known[kind]; ok {
		return known, nil
	}
	converted, err := admission.NewVersionedAttributes(v.a, kind, v.o)
	if err == nil {
		v.known[kind] = converted
	}
	return converted, err
}
