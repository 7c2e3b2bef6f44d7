// Package servecmd implements the serve command.
package servecmd
