// Package archtest holds the tests that keep the source in order: who may import whom, and what every file owes its reader. It reads the
// source of the repository and runs nothing of it, so that it has its say on code that doesn't compile yet.
//
// The rules of imports are tables in layers.go: a new package or a new dependency gets a line there.
package archtest
