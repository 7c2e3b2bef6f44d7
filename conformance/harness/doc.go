// Package harness is what a conformance case works with. A [Case] is one rule of the protocol and the
// function that tests it; its ID never changes.
//
// A [Target] describes the server or client under test and opens an [Instance] of the server for each
// case. The case gets an [Env]: the collection, the server in front of it, and a client for one [Variant]
// of a transport. With it the case writes objects, watches them through this module's client, or exchanges
// the bytes of HTTP/1.1, HTTP/2 and WebSocket by hand.
//
// A case never waits to see that no event comes: it writes a sentinel object and reads until that object
// arrives. A case that needs time to pass runs in a bubble of testing/synctest, over a network in memory.
package harness
