// Package conformance holds transports, servers and clients to the protocol, those of this module and anybody's.
//
// [Run] tests a server in a Go test, a subtest for each case and transport; [Execute] does it anywhere and returns a [Report]. What is tested
// is a [Target]. The rules are in package cases, each with its authority; [List] returns them.
package conformance
