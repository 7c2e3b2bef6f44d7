// Package readcmd implements the commands get and watch.
package readcmd
