// Package apiserver runs a Kubernetes API server inside a test, with its own etcd. The
// server is k8s.io/apiextensions-apiserver, which serves custom resources with the same
// code as kube-apiserver.
//
// The package is empty under the race detector: compiling the server would take minutes, and
// the detector would report races in the server rather than in our code.
package apiserver
