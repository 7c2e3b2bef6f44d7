// Package compress compresses streams of events in such a way that each event is compressed
// only once for all streams, and decompresses such streams.
//
// A [BlockWriter] compresses a list; see there.
//
// transport/coding.go chooses the coding of a stream, and internal/apihttp/body.go the coding of a
// list.
//
// Usually each event is compressed without reference to earlier events. Therefore the result is the
// same in every stream, and a stream needs no compressor of its own. A [SegmentDeflater] makes
// smaller results, which refer to earlier events. Each event ends at a flush point, so that a
// decoder returns the whole event before the next one arrives.
//
//   - gzip (RFC 1952): a stream is one member. It starts with [GzipHeader]. An event consists of
//     deflate blocks ([AppendDeflate]), and [Checksum.AppendTrailer] ends the stream. A member
//     per event would also be valid, and a [Reader] reads it. But Chromium stops after the first
//     member, curl reports an error, and Go returns an event only when the next one has started.
//   - zstd (RFC 8878): an event is a zstd frame ([AppendZstd]). Most decoders read concatenated
//     frames.
//   - permessage-deflate (RFC 7692): a message consists of deflate blocks without the last
//     [SyncMarker].
package compress
