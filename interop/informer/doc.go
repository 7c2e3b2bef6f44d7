// Package informer has only tests: our informer and client-go's, each typed by the types of Kubernetes, against our server and a real
// Kubernetes API server; and what the two cost, side by side.
package informer
