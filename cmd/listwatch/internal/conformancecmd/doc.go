// Package conformancecmd implements the conformance command.
package conformancecmd
