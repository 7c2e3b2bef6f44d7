// Package field runs listwatch against programs that real clusters have: a kube-apiserver, with
// etcd 3.7 or an older one, with and without `listwatch relay --cluster` in front of it.
// The relay has its default flags, and every request must have the same response through it. The
// requests are listed, except for random writes and reads of built-in kinds in Protobuf.
//
// The kube-apiserver is a program that the tests do not build: `make field` builds it and runs
// the tests. The environment variable LISTWATCH_KUBE_APISERVER has its path.
package field
