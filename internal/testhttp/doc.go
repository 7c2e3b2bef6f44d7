// Package testhttp starts an http.Handler for a test, in memory or on a port of 127.0.0.1, in
// clear text or over TLS.
//
// [Start] is the only entry. The server closes at the end of the test. In memory it also works
// in a synctest bubble, and [Server.Conns] gives the test the connections, to reset or stall
// them.
//
// To serve a listwatch Source, use package servertest, which builds on this one.
package testhttp
