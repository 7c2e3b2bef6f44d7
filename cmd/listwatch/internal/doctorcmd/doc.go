// Package doctorcmd implements the command doctor, which finds out how the proxies between a client
// and a server affect watches.
package doctorcmd
