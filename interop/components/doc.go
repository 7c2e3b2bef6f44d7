// Package components runs kube-controller-manager and kube-scheduler with a relay of a
// kube-apiserver as their API server, and compares what they achieve, and how long it takes, with
// the same components at the kube-apiserver itself.
//
// The tests do not build these programs: `make long-components` builds them and runs the tests. The
// environment variable LISTWATCH_KUBERNETES has their directory.
package components
