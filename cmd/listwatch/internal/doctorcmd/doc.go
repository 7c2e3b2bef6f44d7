// Package doctorcmd implements the doctor command, which finds out how the proxies between a client
// and a server affect watches, and what keeps a server from serving tables of PostgreSQL.
package doctorcmd
