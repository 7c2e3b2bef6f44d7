// Package kubeapi serves collections at the paths of the Kubernetes API, for curl, kubectl,
// client-go and other Kubernetes clients: /api/v1/… for the core group,
// /apis/GROUP/VERSION/… for the other groups, within one namespace or across all of them,
// and the old /watch/ paths.
//
// Start with [Handler]:
//
//	var api kubeapi.Handler
//	for _, r := range kubeapi.DefaultResources() {
//		c, err := db.Collection(r.CollectionSpec())
//		err = api.Add(r, c)
//	}
//	http.ListenAndServe("127.0.0.1:8080", &api)
//
// Objects may be any JSON with kind, apiVersion and metadata. Fields whose types are known,
// from the metadata or the schema, must have these types, so that typed clients can decode
// what they list. A namespace needs no Namespace object, and deleting a Namespace object
// deletes nothing else, because no controllers run here. A write to an object may also set
// its status. Request bodies are JSON, YAML or, for Kubernetes' own kinds, Protocol
// Buffers. Patches are merge patches, JSON patches or, for resources with a schema,
// strategic merge patches. Server-side apply is rejected with status 415. Responses are
// JSON.
//
// # Where to look
//
// A path is parsed in route.go and dispatched in handler.go. Reads of one object are in
// response.go, writes in write.go, delete.go and patch.go, and the scale subresource is in
// scale.go; package watchserver serves lists and watches. Request bodies are read in
// body.go, Protocol Buffers by package protobody. Types of fields are in package
// schema, and strategic merge patches in package strategicpatch. Discovery is in
// discovery.go and openapi.go, authentication and authorization in auth.go. Tables and
// metadata-only responses are in package table, with the columns that kubectl shows.
package kubeapi
