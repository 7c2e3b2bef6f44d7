// Package etcd keeps collections in etcd, so that any number of servers can stand on one cluster.
//
//	db, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:2379"}})
//	flags, err := db.Collection(store.Resource{Kind: "Flag"})
//
// A version is a revision of etcd, so it means the same at every server: a client may write at one, watch at another and resume at a
// third. A server has one watch of etcd for each collection, however many watchers it has itself: these hang on a log in memory, as those of
// every store do, and so do lists.
//
// # Freshness
//
// A list or a watch that asks for the newest state asks etcd for its newest revision, by a linearized read that concurrent callers share, and waits until
// the watch has come as far. Where that takes more than 3 seconds, or etcd is lost, it fails with [listwatch.NotYet] (504): nothing
// is ever answered with a state that may be older than an acknowledged write, unless the caller said that any will do.
//
// # Layout
//
// An object is at prefix/collection/namespace/name, where the collection is its plural with the group ("deployments.apps") and an object
// without a namespace has no segment for it. The value is the object's JSON without metadata.resourceVersion, which is the revision that the key was
// modified at. Prefix and collection can be chosen otherwise, so that what Kubernetes keeps can be served: see [Options] and [KubernetesLayout].
//
// # History
//
// A collection begins some way in the past, at the oldest revision that etcd still has (at most [Options.History] back), and follows from
// there: so a server that starts can resume the watchers of others. It loses its place only where etcd compacts a revision before it was seen;
// then it lists again, and its watchers are told that their place expired.
//
// etcd 3.4.31 or 3.5.13 or later is needed: those before may answer a request for progress before they have sent the events.
package etcd
