// Package relaycmd implements the relay command.
package relaycmd
