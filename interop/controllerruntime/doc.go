// Package controllerruntime has only tests: the clients, caches and managers of controller-runtime, and a controller made with them,
// work against our server.
package controllerruntime
