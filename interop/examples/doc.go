// Package examples holds an informer of client-go and a controller of controller-runtime over our
// server. docs/kubernetes.md refers to them.
package examples
