// Package doctorcmd implements the doctor command, which finds out how the proxies between a client
// and a server affect watches.
package doctorcmd
