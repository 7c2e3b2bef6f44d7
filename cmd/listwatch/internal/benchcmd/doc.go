// Package benchcmd implements the command bench, which measures a server from outside.
package benchcmd
