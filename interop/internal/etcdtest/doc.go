// Package etcdtest runs etcd inside a test.
package etcdtest
