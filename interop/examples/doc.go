// Package examples holds the programs of docs/kubernetes.md, so that they are compiled and tested.
package examples
