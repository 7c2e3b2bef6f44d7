// Package kubernetes contains only tests. They compare our code with Kubernetes' own
// libraries and servers:
//
//   - metadata_*: our validation of objects, compared with Kubernetes' typed clients;
//   - patch_*: our strategic merge patch, compared with Kubernetes' implementation;
//   - protobuf_*: our conversion of Protocol Buffers, compared with the JSON of clients;
//   - conformance_test.go: our conformance suite, run against a Kubernetes API server,
//     on its own HTTP/2 and on ours;
//   - h2loop_*: a Kubernetes API server on our HTTP/2, tested with client-go;
//   - random_*: our server and a Kubernetes API server, compared by random requests;
//   - relay_test.go: listwatch relay in front of a Kubernetes API server;
//   - informer_*: our informer and client-go's informer, tested and benchmarked side by side.
//
// The tests that start an API server are not compiled with the race detector; the
// documentation of package apiserver gives the reasons.
package kubernetes
