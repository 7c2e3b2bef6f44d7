// Package wsprotocol has tests alone: those of [cases.Tortures], over both backends and both ends, and of [mutants.Tortures], which the former must
// notice. What the libraries are known to do otherwise is in known.txt, with its reason.
package wsprotocol
