// Package etcdcluster holds two servers over an etcd of three members to the guarantees of a watch, while members and servers are killed, stand
// still, are cut off from each other, and history is compacted under them.
package etcdcluster
