// Package cases holds a server and the clients of this module to the rules of the list-watch protocol, rule by rule: one test for each,
// on every transport that the rule is about, both in what a well-behaved client sees and byte by byte where a library would hide it.
//
// The table in table_test.go is the place to start: it names each rule by an id that never changes, with a sentence that says it, the
// authority it comes from, and the function that tests it. A case is a function of an env, which has a collection, a server in front
// of it and ways to reach both; it never waits for nothing to happen, but writes a sentinel and reads up to that.
package cases
