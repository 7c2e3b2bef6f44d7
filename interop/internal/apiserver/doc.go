// Package apiserver runs a Kubernetes API server within a test: k8s.io/apiextensions-apiserver, which serves custom resources by the
// same code that kube-apiserver serves everything by, over an etcd of its own. It is not there under the race detector: to compile these
// two with it takes minutes, and the races would be theirs.
package apiserver
