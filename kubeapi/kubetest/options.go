package kubetest

// Options configure an [Env]. The zero value is a cluster without custom resources.
type Options struct {
	// CRDs are the paths of files with CustomResourceDefinitions that the Env serves, and of
	// directories with such files. In a directory, the Env reads the files whose names end with
	// .yaml, .yml or .json, except kustomization.yaml. Subdirectories are not searched. Documents
	// of other kinds are ignored. A definition without versions is a merge patch of an earlier one,
	// as in config/crd/patches of kubebuilder's projects, which makes webhooks convert objects.
	CRDs []string
	// Objects are the paths of files and directories, like CRDs, with objects that exist from the
	// start, such as roles and their bindings. Their namespaces must exist or come first; an object
	// that names none is in the namespace default. Documents of the kinds that CRDs and Webhooks
	// read are ignored, so that all three options can name the output of kustomize.
	Objects []string
	// Webhooks are the paths of files and directories, like CRDs, with the configurations of
	// admission webhooks, and with admission policies and their bindings. The Env creates the
	// objects; see [Env.WebhookMux] for their server.
	Webhooks []string
	// WebhookServer is the URL of the server of the webhooks that are services, such as
	// https://127.0.0.1:9443. Its certificate is not verified. If empty, [Env.WebhookMux] has their
	// handlers.
	WebhookServer string
	// NoGarbageCollection keeps objects whose owners have been deleted. Owner references then have
	// no effect, and an object that is deleted with the propagation policy Orphan or Foreground
	// keeps a finalizer, as in envtest.
	NoGarbageCollection bool
	// NoNamespaceDeletion keeps a deleted namespace in phase Terminating, with its objects, as in
	// envtest.
	NoNamespaceDeletion bool
	// NoFinalizers makes each delete remove the object. Otherwise an object remains until writers
	// have removed its finalizers. Namespaces have finalizers in any case.
	NoFinalizers bool
	// ManagedFields keeps metadata.managedFields from the creation of each object on, as a cluster
	// does. Otherwise an object has them from its first apply on, and other writes are faster. In
	// both cases, the objects that exist from the start have none before they are applied.
	ManagedFields bool
}
