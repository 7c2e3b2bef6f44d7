// Package faults has only tests: informers of client-go outlive what servers and networks do to them, and end with what the server has.
package faults
