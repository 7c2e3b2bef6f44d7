// Package components runs kube-controller-manager and kube-scheduler with a relay of a
// kube-apiserver as their API server, and compares what they achieve, and how long it takes, with
// the same components at the kube-apiserver itself. It does the same with Kubernetes' own specs of
// sig-api-machinery.
//
// The tests do not build these programs: `make long-components` and `make long-e2e` build them and
// run the tests. The environment variables LISTWATCH_KUBERNETES and LISTWATCH_E2E have their
// directories.
package components
