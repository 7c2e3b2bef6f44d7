// Package relay runs listwatch relay in front of a Kubernetes API server, and has client-go's informers, and reads as kubectl makes them, use it
// as the API server that it stands for.
package relay
