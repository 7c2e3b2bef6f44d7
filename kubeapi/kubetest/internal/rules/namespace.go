package rules

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
	corev1 "k8s.io/api/core/v1"
)

// InNamespace returns the rules of admit for the objects of r, and the rule that a new object needs
// a namespace that exists and is not being deleted, as in the admission plugin NamespaceLifecycle.
func InNamespace(r kubeapi.Resource, namespaces func() *store.Collection, admit Admit) Admit {
	if !r.Namespaced {
		return admit
	}
	return func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
		if old == nil {
			if err := RequireNamespace(ctx, r, namespaces(), KeyOf(data)); err != nil {
				return nil, err
			}
		}
		return admit(ctx, old, data)
	}
}

// RequireNamespace returns an error if the namespace of an object of r does not exist or is being
// deleted.
func RequireNamespace(ctx context.Context, r kubeapi.Resource, namespaces *store.Collection, key listwatch.Key) error {
	o, err := namespaces.Get(ctx, listwatch.Key{Name: key.Namespace})
	if err != nil || !IsBeingDeleted(o.Data) {
		return err
	}
	const because = "unable to create new content in namespace %s because it is being terminated"
	return &listwatch.Error{
		Code:    listwatch.Forbidden,
		Message: fmt.Sprintf("%s %q is forbidden: "+because, r.QualifiedName(), key.Name, key.Namespace),
		Details: &listwatch.Details{Name: key.Name, Group: r.Group, Kind: r.Plural, Causes: []listwatch.Cause{{
			Reason: string(corev1.NamespaceTerminatingCause), Field: "metadata.namespace",
			Message: fmt.Sprintf("namespace %s is being terminated", key.Namespace),
		}}},
	}
}
