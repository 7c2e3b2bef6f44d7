// Package suites contains only tests. They compare package kubetest with real API servers by the
// tests and examples of other projects:
//
//   - controllerruntime_test.go: the suites client, cache, webhook and builder of
//     controller-runtime, on kubetest and, if the variable LISTWATCH_KUBE_APISERVER names one, on
//     a kube-apiserver;
//   - projects_test.go: the suites of other projects, such as Cluster API and KEDA;
//   - gateway_test.go: the custom resources of the Gateway API, whose schemas have many CEL rules,
//     on kubetest and on a Kubernetes API server for custom resources.
//
// levels_test.go judges a kube-apiserver by the conformance suite, at level 1.
//
// docs/kubetest.md lists the differences. The tests fail if a sentence about a difference is
// missing there, or if a listed difference no longer exists.
package suites
