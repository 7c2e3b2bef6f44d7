// Package library carries watches over WebSocket through a WebSocket library. The packages gorilla
// and nhooyr adapt one library each; an adapter of another library needs exported names only.
//
// The server's side of an adapter is a [ServerConn] and a function that upgrades a request to it,
// for [Server]. The client's side is a [ClientConn] and a function that opens it, for [Dial]. The
// protocol is that of package websocket, but a server with a library writes each message
// separately, takes more memory for each watch, and does not compress, because it would compress
// each message again for each watcher.
package library
