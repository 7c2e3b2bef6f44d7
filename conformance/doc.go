// Package conformance tests servers, clients, transports, framings and stores against the
// list-watch protocol.
//
// In a Go test, [Run] tests a server with a subtest for each case and transport. [Execute] runs the
// same cases anywhere and returns a [Report]. Both take a [Target], which describes the server or
// client. [List] returns the cases. Package cases contains the rules and their sources, package
// harness has the operations that cases use, and package runner decides which cases run and
// determines their verdicts. [TestSource], [TestFramer] and [TestTransport] test stores, framings
// and transports without a Target.
package conformance
