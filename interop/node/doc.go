// Package node has no code but tests: Kubernetes' client for JavaScript, @kubernetes/client-node, unmodified, against our server. Its
// scripts are in testdata, with what npm installs for them.
package node
