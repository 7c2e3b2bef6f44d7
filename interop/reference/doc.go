// Package reference has tests alone: what our conformance suite finds in Kubernetes' own API server. What it does otherwise than our rules
// is in known/kubernetes.txt, with its reason.
package reference
