// Package testhttp starts an http.Handler for a test, in memory or on a port of 127.0.0.1, in
// clear text or over TLS.
//
// [Start] starts the server. The server is closed at the end of the test. In memory it also
// works in a synctest bubble, and the test can reset or stall the connections that
// [Server.Conns] returns.
//
// To serve a listwatch Source, use package servertest, which builds on this one.
package testhttp
