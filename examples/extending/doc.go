// Package extending shows how to extend listwatch from another module: a framing, a transport, a
// source and a store. These packages import only the exported names of the root module, so they can
// be copied.
//
//   - msgpackframing: a framing of events in MessagePack;
//   - longpoll: a transport by long polling;
//   - slicesource: a source over a slice of writes;
//   - mapstore: a store over a map.
//
// README.md describes what each must guarantee, and which test suite verifies it.
package extending
