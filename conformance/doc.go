// Package conformance tests servers, clients, transports, framings and stores against the
// list-watch protocol.
//
// In a Go test, [Run] tests a server with a subtest for each case and transport. [Execute]
// runs the same cases anywhere and returns a [Report]. Both take a [Target], which
// describes the server or client. [List] returns the cases; package cases contains the
// rules and their sources, package harness what a case can do, and package runner decides what is
// skipped, and the verdicts. [TestSource], [TestFramer] and [TestTransport] test other parts.
package conformance
