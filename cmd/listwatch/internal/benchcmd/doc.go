// Package benchcmd implements the bench command, which measures a server from outside.
package benchcmd
