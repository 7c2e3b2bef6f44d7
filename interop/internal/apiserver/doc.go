// Package apiserver runs a Kubernetes API server inside a test, with its own etcd. The server is
// k8s.io/apiextensions-apiserver, which serves custom resources with the same code as kube-apiserver.
//
// The package is empty under the race detector: the compilation would take minutes, and the server's
// races would not be ours.
package apiserver
