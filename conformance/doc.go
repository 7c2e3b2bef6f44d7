// Package conformance holds transports, servers and clients to the protocol. Its tests run every client against every server, in every
// framing, plain and over TLS, through cuts and resumes, and a real browser beside them.
package conformance
