// Package doctorcmd implements the command doctor, which finds out what proxies between a client
// and a server do to watches.
package doctorcmd
