// Package relaycmd implements the command relay.
package relaycmd
