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
// Objects may be any JSON with kind, apiVersion and metadata. The fields of the metadata, and the
// fields that a resource's schema describes, must have the right types, so that typed clients can
// decode the objects that they list. An object can be created in a namespace without a Namespace
// object. Deleting a Namespace object deletes nothing else, because no controllers run here. A
// write to an object may also set its status. Request bodies are JSON, YAML, CBOR or, for
// Kubernetes' own kinds, Protocol Buffers. Patches are merge patches, JSON patches, server-side
// apply or, for resources with a schema, strategic merge patches. Responses are JSON. If the client
// prefers CBOR, objects and lists are sent as CBOR.
//
// # Where to look
//
// resource.go declares what is served, and resourcename.go checks the names. route.go parses a
// path, and serve.go dispatches the request. response.go reads one object, write.go, delete.go
// and patch.go write, and scale.go implements the scale subresource. Package watchserver serves
// lists and watches. body.go reads request bodies, and package protobody converts Protocol
// Buffers. Package schema has the types of fields, and package strategicpatch applies strategic
// merge patches. discovery.go and openapi.go implement discovery, and auth.go authentication and
// authorization. Package tokenfile reads tokens, package abac policies, and package crd
// CustomResourceDefinitions. Package table renders tables with the columns that kubectl shows, and
// metadata-only responses.
package kubeapi
