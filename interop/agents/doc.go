// Package agents contains only a benchmark: what node agents cost a kube-apiserver, directly and
// through relays of the cluster. `make agents` builds the programs that it needs.
package agents
