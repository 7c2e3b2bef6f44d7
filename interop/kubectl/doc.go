// Package kubectl has no code: its tests run the unmodified kubectl of the module k8s.io/kubectl against our server, each command in a
// process of its own.
package kubectl
