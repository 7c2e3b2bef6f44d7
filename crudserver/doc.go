// Package crudserver serves one collection for reading, watching and writing at a URL of your
// choice, for programs that do not need the paths of the Kubernetes API.
//
// Start with [Handler]:
//
//	http.Handle("/flags", h)  // h is a *crudserver.Handler with Path "/flags"
//	http.Handle("/flags/", h)
//
// The verbs, bodies and errors are the same as in Kubernetes:
//
//	GET    /flags             list, or watch with ?watch=1
//	POST   /flags             create
//	GET    /flags/dark-mode   get, or watch this object with ?watch=1
//	PUT    /flags/dark-mode   update
//	PATCH  /flags/dark-mode   change members, by a merge patch (rfc7396)
//	DELETE /flags/dark-mode   delete
//
// In a collection with namespaces, an object is at /flags/NAMESPACE/NAME, and /flags/NAMESPACE
// lists, watches and creates objects of one namespace.
//
// An object is JSON. A write of an object with metadata.resourceVersion, or with the ETag of the
// object in If-Match, fails if another writer was faster. [store.Collection] has all rules for
// objects. client.Remote is a client for these verbs, and package typed adds Go values.
//
// For the paths and all patches of Kubernetes, kubectl and client-go, use package kubeapi.
//
// # Source files
//
// handler.go parses the path and dispatches the request, and write.go performs the writes. Package
// watchserver serves lists and watches.
package crudserver
