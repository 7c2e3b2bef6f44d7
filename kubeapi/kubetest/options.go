package kubetest

import "slices"

// An Option configures [New].
type Option func(*options)

type options struct {
	definitions []string
	without     []Feature
}

func (o *options) has(f Feature) bool { return !slices.Contains(o.without, f) }

// CRDs serves the CustomResourceDefinitions in the given files, and in the files of the given
// directories whose names end with .yaml, .yml or .json. It does not descend into
// subdirectories. Documents of other kinds are ignored.
func CRDs(paths ...string) Option {
	return func(o *options) { o.definitions = append(o.definitions, paths...) }
}

// Without turns features off, which are otherwise on.
func Without(features ...Feature) Option {
	return func(o *options) { o.without = append(o.without, features...) }
}

// A Feature is a part of a cluster besides the API server that an [Env] has. See [Without].
type Feature int

// The features.
const (
	// GarbageCollection deletes objects whose owners have been deleted, and carries out the
	// propagation policies of deletes. Without it, owner references have no effect, and an object
	// that is deleted with the policy Orphan or Foreground keeps a finalizer, as in envtest.
	GarbageCollection Feature = iota
	// NamespaceDeletion deletes the objects of a deleted namespace, and then the namespace. Without
	// it, a deleted namespace remains in phase Terminating, as in envtest.
	NamespaceDeletion
	// Finalizers delay the deletion of an object until writers have removed all its finalizers.
	// Without them, each delete removes the object. Namespaces have finalizers in any case.
	Finalizers
)
