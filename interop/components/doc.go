// Package components runs kube-controller-manager and kube-scheduler with a relay of a
// kube-apiserver as their API server, and compares what they achieve, and how long it takes, with
// the same components at the kube-apiserver itself. It does the same with Kubernetes' own specs of
// sig-api-machinery, and compares what CoreDNS and kube-state-metrics show of a cluster.
//
// The tests do not build these programs: `make long-components`, `make long-e2e` and
// `make long-readers` build them and run the tests. The environment variables LISTWATCH_KUBERNETES,
// LISTWATCH_E2E and LISTWATCH_READERS have their directories.
package components
