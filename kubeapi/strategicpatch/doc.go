// Package strategicpatch applies the patches that kubectl apply, edit and set send for the kinds it knows: strategic merge patches
// (Kubernetes, "Update API Objects in Place Using kubectl patch").
//
// A patch is an object of the same form as the one it changes. As in a JSON merge patch, objects are merged and null removes; beyond
// that, lists that the schema says so of are merged too, element by element, and members whose names begin with a dollar sign are
// directives:
//
//	$patch: replace | delete | merge   in an object, or in an element of a list: what is done with it
//	$patch: replace                    alone in an element of a list: the others replace the list
//	$retainKeys: [NAME, ...]           all other members go
//	$setElementOrder/LIST: [...]       in which order the elements of LIST stand; of merged objects: their keys
//	$deleteFromPrimitiveList/LIST: [...]  which scalars leave LIST
//
// [Apply] works on the bytes: what a patch leaves alone stays as it was spelt and where it stood. The order of merged lists is that of
// Kubernetes.
//
// # Differences from Kubernetes
//
// Where k8s.io/apimachinery loses something without a word, or fails for no good reason, this package does not follow it:
//
//   - A $patch: replace in an object that is not there yet makes it; there, the whole value is dropped.
//   - A $patch: replace beside other members in an element of a list is refused: there, it throws the element away and replaces the
//     list by the others.
//   - In what a patch adds, nulls and directives are left out at any depth: also below $patch: replace, in lists that are replaced and
//     in elements that are new. There, what an element has to lose is added with it.
//   - A list in both $deleteFromPrimitiveList and the patch loses what is to be deleted, in whatever order they are written.
//   - Fields that no schema knows are merged, if they are objects, or replaced, and elements that lack the key of their list stay. There,
//     these are errors, and so is a list to be put in order that has no elements.
//   - $patch: merge does what is done without it; there, it is an error.
//   - A $patch: delete or replace of the whole object is refused.
package strategicpatch
