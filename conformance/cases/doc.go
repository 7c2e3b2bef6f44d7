// Package cases holds servers and clients to the protocol, one rule at a time. Each [Case] is a rule, with its authority, and what tests
// it; its id is that of the rule and never changes.
//
// A case is given a collection, a server in front of it and ways to reach both, all of them by a [Target]: [Own] is this module's
// server, and any other server is one by its URL and, for cases that write, by a [Store]. A case never waits for nothing to happen: it
// writes a sentinel and reads up to that. What has to pass time runs in a bubble of testing/synctest, over a network in memory.
package cases
