// Package apiserver runs a Kubernetes API server inside a test, with its own etcd. The
// server is k8s.io/apiextensions-apiserver, which serves custom resources with the same
// code as kube-apiserver.
//
// The package is empty under the race detector, because compiling the server would take
// minutes, and it would report races of the server and not of our code.
package apiserver
