// Package examples has the programs of docs/kubernetes.md, compiled and run.
package examples
