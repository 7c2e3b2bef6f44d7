// Package kubetest is a Kubernetes API in a Go test: it starts in milliseconds, needs no socket
// and nothing to download, and works inside testing/synctest.
//
//	env := kubetest.New(t, kubetest.Options{CRDs: []string{"config/crd/bases"}})
//	clients, err := kubernetes.NewForConfig(env.Config())
//
// An [Env] serves the built-in kinds that controllers use and the custom resources of the given
// definitions, from memory and with the code of package kubeapi. Like a cluster, and unlike
// envtest, it collects the dependents of deleted owners and empties deleted namespaces.
// [Env.Faults] makes it fail on command.
//
// There are no controllers of built-in kinds and no kubelet.
// docs/kubetest.md lists all differences.
//
// # Source files
//
// env.go starts the server, and options.go configures it. definitions.go chooses what api.go
// serves, with the kinds and rules of internal/rules. actions.go serves the subresources that do
// something, such as pods/eviction, and reviews.go the reviews. admission.go connects writes with
// internal/admission, which calls webhooks and applies policies. users.go identifies the users, and
// rbac.go decides with internal/rbac what they may do. conversion.go converts objects between
// versions. internal/collector collects dependents and empties namespaces. faults.go decides on
// faults: backend.go has the faults of collections, and requests.go the faults of requests.
// settle.go, run.go, loops.go and watchdog.go are for tests in bubbles.
package kubetest
