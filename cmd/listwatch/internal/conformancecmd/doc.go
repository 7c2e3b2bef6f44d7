// Package conformancecmd implements the command conformance.
package conformancecmd
