// Package sources contains only tests: they run the conformance cases over the sources of the main
// module.
package sources
