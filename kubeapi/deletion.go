package kubeapi

import (
	"context"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Deletion has the rules for deletes of the objects of a [Resource]. The zero Deletion suits most
// kinds, and all custom resources. It has no effect unless [Handler.Collected] is true.
type Deletion struct {
	// Policy is the propagation policy if a delete has none, and the object has no finalizer of a
	// policy. It is Orphan for the Jobs of a cluster. If empty, it is Background.
	Policy metav1.DeletionPropagation
	// Unpropagated is true if no policy has an effect, as for events.
	Unpropagated bool
	// Warning is sent in response to a delete that has no policy. It may be empty.
	Warning string
	// ReturnsObject is true if the response to a delete is the deleted object, and not a Status.
	ReturnsObject bool
	// Mark returns the object with the finalizers that it should have while it is deleted with the
	// options o. old is the stored object, and next is old with the finalizers of the policy. If
	// Mark also sets metadata.deletionTimestamp, the delete changes nothing else. If nil, next is
	// used.
	Mark func(old, next []byte, o metav1.DeleteOptions) ([]byte, error)
	// Admit returns an error if the object old must not be deleted. It may wait. If nil, every
	// object can be deleted.
	Admit func(ctx context.Context, old []byte, o metav1.DeleteOptions) error
}

// Delete deletes an object of r as a DELETE with the propagation policy of o does, if
// [Handler.Collected] is true. It returns the last state of the object. isGone is false if
// finalizers delay the deletion. The preconditions of o have no effect.
func (r Resource) Delete(
	ctx context.Context, from *store.Collection, key listwatch.Key, p listwatch.Preconditions, o metav1.DeleteOptions,
) (last *listwatch.Object, isGone bool, err error) {
	last, err = from.DeleteAs(ctx, key, p, func(old *listwatch.Object) (next []byte, err error) {
		if next = r.Deletes.mark(old.Data, o); r.Deletes.Mark != nil {
			next, err = r.Deletes.Mark(old.Data, next, o)
		}
		if err == nil && r.Deletes.Admit != nil {
			err = r.Deletes.Admit(ctx, old.Data, o)
		}
		isGone = len(parseFinalizers(rawjson.Lookup(next, "metadata", "finalizers"))) == 0
		return next, err
	})
	if err != nil {
		return nil, false, err
	}
	return last, isGone || rawjson.Lookup(last.Data, "metadata", "deletionTimestamp") == nil, nil
}

// mark returns object with the finalizer of the propagation policy, and without the finalizers of
// other policies. As in Kubernetes, the policy of a later delete replaces the policy of an earlier
// delete.
func (d Deletion) mark(object []byte, o metav1.DeleteOptions) []byte {
	before := parseFinalizers(rawjson.Lookup(object, "metadata", "finalizers"))
	name := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
	}[d.policyFor(before, o)]
	after := slices.DeleteFunc(slices.Clone(before), func(f string) bool {
		return f != name && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if name != "" && !slices.Contains(after, name) {
		after = append(after, name)
	}
	if slices.Equal(before, after) {
		return object
	}
	return jsonvalue.SetFinalizers(object, after)
}

// policyFor returns the policy of a delete of an object with the given finalizers. The options
// override the finalizers, and these override the default of the kind.
func (d Deletion) policyFor(finalizers []string, o metav1.DeleteOptions) metav1.DeletionPropagation {
	//lint:ignore SA1019 old clients still use the option
	orphan := o.OrphanDependents
	switch {
	case d.Unpropagated:
		return metav1.DeletePropagationBackground
	case orphan != nil && *orphan:
		return metav1.DeletePropagationOrphan
	case orphan != nil:
		return metav1.DeletePropagationBackground
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return d.Policy
}

// warning returns the warning about a delete with the options o, or "".
func (d Deletion) warning(o metav1.DeleteOptions) string {
	//lint:ignore SA1019 old clients still use the option
	if o.PropagationPolicy != nil || o.OrphanDependents != nil {
		return ""
	}
	return d.Warning
}
