// Package servecmd implements the command serve.
package servecmd
