// Package rest describes requests: which parameters exist, what they mean, and which verb a method
// has at a path. Servers and clients share it, so that no two of them disagree.
package rest
