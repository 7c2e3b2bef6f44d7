// Package etcdtest runs etcd for tests: a server in the same process, or a cluster of
// processes that can be killed, paused and disconnected, with a proxy that changes watch
// responses.
package etcdtest
