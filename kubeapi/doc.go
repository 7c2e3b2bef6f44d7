// Package kubeapi serves collections at the paths of the Kubernetes API, so that curl, kubectl and client-go find them where they look:
// /api/v1/… for the core group, /apis/GROUP/VERSION/… for the others, by namespace or in all of them, and the old /watch/ forms.
//
// The type to start with is [Handler]:
//
//	var api kubeapi.Handler
//	for _, r := range kubeapi.DefaultResources() {
//		c, err := db.Collection(r.Declare())
//		err = api.Add(r, c)
//	}
//	http.ListenAndServe("127.0.0.1:8080", &api)
//
// Objects are any JSON with kind, apiVersion and metadata; fields of which the types are known, those of the metadata and of the schema, must
// have them, so that typed clients can decode what they list. No namespace object is needed before one is used, and deleting one
// deletes nothing else: there are no controllers here, and a write may set the status with everything else. Bodies are JSON,
// YAML or, for Kubernetes' own kinds, Protocol Buffers; patches are merge patches, JSON patches or, for resources with a schema, strategic
// merge patches. Server-side apply is answered 415. Answers are JSON.
//
// # Where to look
//
// A path is read in path.go and dispatched in handler.go. The get is in verbs.go, the writes in write.go, delete.go and patch.go, the scale
// of an object in scale.go; lists and watches are package watchserver's. Bodies are read in body.go, those in Protocol Buffers by package
// protobody; what is done about members that come twice is in validation.go. What is known of the fields of objects is in package schema, and strategic merge patches are in package strategicpatch. What
// there is is told by discovery.go and openapi.go, and auth.go and tokens.go say who is asking. Tables and metadata alone are in table.go,
// and what kubectl shows of a resource in columns.go.
package kubeapi
