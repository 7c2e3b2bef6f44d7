// Package etcd tests the store over a real etcd.
package etcd
