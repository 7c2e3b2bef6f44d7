// Package lives compares kubetest, the in-memory Kubernetes API for tests of controllers, with a
// kube-apiserver whose garbage collector and namespace controller are those of
// kube-controller-manager.
//
// Objects lead the same lives in both: the lives in written_test.go, and random ones. After each
// request the test compares the responses, waits until both have settled, and compares all objects.
// A life that ends in a difference is led again, and fails the test if it differs again.
// exceptions_test.go explains the differences, with sentences of docs/kubetest.md.
//
// The tests do not build the programs: `make lives` builds them and runs the tests. The
// environment variable LISTWATCH_KUBERNETES has their directory.
package lives
