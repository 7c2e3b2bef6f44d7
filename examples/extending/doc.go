// Package extending shows how to extend listwatch from another module: a framing, a transport, a
// source, a store and an encoding. These packages import only the exported names of the root
// module, so they can be copied.
//
//   - msgpackframing: a framing of events in MessagePack;
//   - longpoll: a transport by long polling;
//   - slicesource: a source over a slice of writes;
//   - mapstore: a store over a map;
//   - protoencoding: an encoding of objects as Protocol Buffers, and a framing for it.
//
// README.md describes what each must guarantee, and which test suite verifies it.
package extending
