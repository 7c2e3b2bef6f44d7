// Package agents contains only benchmarks: what node agents cost a kube-apiserver, directly and
// through relays of the cluster, and what an informer with client-go's defaults costs itself. `make
// agents` builds the programs that they need.
package agents
