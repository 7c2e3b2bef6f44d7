// Package etcd keeps collections in etcd, so that any number of servers can share one
// cluster.
//
//	db, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"http://127.0.0.1:2379"}})
//	flags, err := db.Collection(store.CollectionSpec{Kind: "Flag"})
//
// A version is a revision of etcd, so it means the same at every server: a client can write
// at one server, watch at another and resume at a third. A server has one watch of etcd per
// collection, however many watchers it has. It serves lists and watches from a log in memory,
// as every store does.
//
// # Freshness
//
// For a list or a watch of the newest state, the server reads the newest revision of etcd and
// waits until its own watch has reached it. The read is linearized, and concurrent callers
// share it. If it takes more than 3 seconds or etcd is unreachable, the request fails with
// [listwatch.NotYet] (504). A response is never older than an acknowledged write, unless the
// caller accepts any state.
//
// # Layout
//
// The key of an object is prefix/collection/namespace/name. The collection is the plural with
// the group ("deployments.apps"). Objects without a namespace have no such segment. The value
// is the object's JSON without metadata.resourceVersion, which is the revision that last
// modified the key. Prefix and collection can be changed to serve the objects of a Kubernetes
// cluster; see [Options] and [KubernetesLayout].
//
// # History
//
// A collection is loaded at the oldest revision that etcd still has, but at most
// [Options.HistoryRevisions] back, and follows etcd from there. Therefore a server that has
// just started can resume the watches of other servers. If etcd compacts revisions before a
// server has seen them, the server loads the state again, and its watches expire.
//
// # Objects that expire
//
// An object with a TTL has a lease of its own, which the leader of etcd ends. The leader counts the
// time also while no server can reach it, so the TTL must exceed such an outage. etcd rounds a TTL
// up to whole seconds, and to at least two.
//
// etcd 3.4.31, 3.5.13 or later is required. Earlier versions can report progress before they
// have sent the events up to it, and their old leaders can end leases that were renewed.
package etcd
