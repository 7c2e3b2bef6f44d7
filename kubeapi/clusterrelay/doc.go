// Package clusterrelay is a reverse proxy in front of a whole Kubernetes API server. It answers
// lists, gets and watches from caches that all clients share, and passes every other request on,
// with the credentials of the client. Use [New] to create a [Handler]; "listwatch relay --cluster"
// is a Handler with flags (docs/relay-cluster.md).
//
// A client never sees more than it could see without the relay. Before the relay answers from a
// cache, the API server itself identifies the client (TokenReview) and decides whether the client
// may make this request (SubjectAccessReview). If the client may not, the relay passes the request
// on, so that the API server refuses it in its own words. The relay itself verifies client
// certificates. It can pass on the requests of their users only if it has the certificate of an
// authenticating proxy.
//
// A resource has a cache for each encoding that clients use: JSON, or Kubernetes' Protocol Buffers,
// which typed clients of client-go request. Objects have the bytes that the API server sends.
//
// # Source files
//
// handler.go lets each request enter the gate of the server, and decides between a cache and the
// API server. call.go determines which requests a cache can answer, and choice.go in which form.
// proxy.go passes all other requests on, and serve.go answers from a cache. caches.go starts and
// drops the caches, and cache.go is one cache. ownwrites.go makes a cache show the writes that were
// passed on. continuetoken.go has the continue tokens of lists. discovery.go finds the resources.
// reviews.go asks the API server about users and their rights, and certificates.go identifies users
// by client certificates. audit.go counts what clients read and what changes, and auditpage.go
// shows both.
package clusterrelay
