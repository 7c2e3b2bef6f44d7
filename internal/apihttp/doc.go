// Package apihttp is the HTTP side of the handlers that serve collections: watchserver, crudserver
// and kubeapi. Each request enters through a [Gate], which guards its body, applies the limits,
// checks its origin and identifies its user, once and in this order. The handlers behind the gate
// receive the result, an [Admitted], and respond with the functions of this package.
//
// gate.go is the entrance, and limits.go and origin.go are its checks. admitted.go and parsed.go
// define Admitted. negotiate.go chooses the form of a response, and response.go, list.go and
// body.go write it.
package apihttp
