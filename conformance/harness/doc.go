// Package harness holds the tools of a conformance case. A [Case] is one rule of the protocol
// and the function that tests it; its ID never changes.
//
// A [Target] describes the server or client under test and opens an [Instance] of the server
// for each case. The case gets an [Env]: the collection, its server, and a client for one
// [Variant] of a transport. With it the case writes objects, watches them through this module's
// client, or exchanges raw bytes of HTTP/1.1, HTTP/2 and WebSocket.
//
// A case never waits to verify that no event arrives. Instead it writes a sentinel object and
// reads until that object arrives. A case that needs time to pass runs in a synctest bubble, with
// connections in memory.
package harness
