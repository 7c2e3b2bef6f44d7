// Package strategicpatch applies strategic merge patches, which kubectl apply, edit and set
// send for the kinds that they know (Kubernetes, "Update API Objects in Place Using kubectl
// patch").
//
// A patch has the form of the object that it changes. As in a JSON merge patch, objects are
// merged and null removes a member. In addition, lists that the schema marks are merged element
// by element, and members whose names start with a dollar sign are directives:
//
//	$patch: replace | delete | merge   in an object or list element: the operation on it
//	$patch: replace                    as the only member of an element: the other elements
//	                                   replace the list
//	$retainKeys: [NAME, ...]           all other members are removed
//	$setElementOrder/LIST: [...]       the order of the elements of LIST; for objects: their keys
//	$deleteFromPrimitiveList/LIST: [...]  the scalars to remove from LIST
//
// [Apply] works on the JSON text: values that a patch does not change keep their position and
// their exact text. Merged lists have the same order as in Kubernetes.
//
// # Differences from Kubernetes
//
// This package deviates from k8s.io/apimachinery where that package silently loses data or fails
// without a good reason:
//
//   - $patch: replace in an object that does not exist yet creates it. Kubernetes drops the
//     whole value.
//   - $patch: replace next to other members of a list element is rejected. Kubernetes drops
//     the element and replaces the list with the other elements.
//   - Nulls and directives are removed at any depth from the values that a patch adds, also
//     below $patch: replace, in replaced lists and in new elements. Kubernetes adds them to
//     the object.
//   - An element that a patch both adds to a list and deletes with $deleteFromPrimitiveList is
//     deleted, in whatever order the patch contains the two members.
//   - Objects in fields without a schema are merged, other values there are replaced, and
//     elements without the key of their list are kept. An order for a list without elements
//     is ignored. Kubernetes returns errors in these cases.
//   - An explicit $patch: merge has no effect. Kubernetes returns an error.
//   - $patch: delete or replace of the whole object is rejected.
package strategicpatch
