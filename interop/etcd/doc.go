// Package etcd contains only tests. They run the etcd store against real etcd servers:
//
//   - source, history, close, refusals: the store and its errors, over one server;
//   - bugs: known bugs of etcd's watch, reproduced by a proxy;
//   - leader_faults: two stores over three members of etcd, whose leader fails;
//   - cluster_*: two server processes over three members of etcd. Members and servers are
//     killed, paused and disconnected, and history is compacted. Every watcher must see
//     every write once and in order, and every acknowledged write must exist;
//   - bench*: benchmarks.
package etcd
