// Package compress compresses streams of events so that an event is compressed once for all streams, and reads such streams.
//
// Each event is compressed by itself, without a look at what came before it: what comes out is the same in every stream, and no stream
// needs a compressor. It ends at a point where a decoder hands out all it has, so no event waits for the next one.
//
//   - gzip (RFC 1952): a stream is one member. It begins with [GzipHead]; an event is a [Sum] and the deflate blocks of [AppendBlocks];
//     [Sum.AppendTail] ends it. A member for each event would be as legal, and is read here, but Chromium ends such a stream after
//     the first member, curl reports an error, and Go holds each event back until the next one has begun.
//   - zstd (RFC 8878): an event is a frame, of [AppendZstd]; decoders take frames one after another.
//   - permessage-deflate (RFC 7692): a message is the blocks of AppendBlocks without [SyncMarker].
package compress
