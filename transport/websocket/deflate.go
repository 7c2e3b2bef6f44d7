package websocket

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// deflatedEnvelope is like framedEnvelope, for peers that agreed to permessage-deflate.
var deflatedEnvelope = &transport.Envelope{Messages: true, Wrap: appendDeflatedFrame, Compression: permessageDeflate}

// appendDeflatedFrame appends a message as one frame. A message that compression does not make
// smaller stays uncompressed, which rfc7692#section-6.1 allows.
func appendDeflatedFrame(dst, payload []byte, isBinary bool) []byte {
	if len(payload) >= compress.MinSize {
		compressed := compress.AppendDeflate(make([]byte, 0, len(payload)), payload)
		compressed = compressed[:len(compressed)-len(compress.SyncMarker)] // rfc7692#section-7.2.1
		if len(compressed) < len(payload) {
			dst = appendHeader(dst, bitFin|bitRSV1|opcode(isBinary), len(compressed))
			return append(dst, compressed...)
		}
	}
	return appendMessageFrame(dst, payload, isBinary)
}

// messageEnd ends a compressed message: the marker that the sender has removed
// (rfc7692#section-7.2.2), and a final block, after which flate returns io.EOF.
const messageEnd = compress.SyncMarker + "\x01\x00\x00\xff\xff"

// An inflater decompresses messages.
type inflater struct {
	in bytes.Reader
	z  io.Reader
}

var inflaters = sync.Pool{New: func() any { return &inflater{z: flate.NewReader(nil)} }}

// inflate appends the decompressed message to dst. The error is a *wswatch.Violation. inflate may
// append to message.
func inflate(dst *bytes.Buffer, message []byte, limit int64) error {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	f.in.Reset(append(message, messageEnd...))
	defer f.in.Reset(nil)
	_ = f.z.(flate.Resetter).Reset(&f.in, nil) // always returns nil
	n, err := dst.ReadFrom(io.LimitReader(f.z, max(limit, limit+1)))
	switch {
	case n > limit:
		return wswatch.ErrTooBig(limit)
	case err != nil:
		return &wswatch.Violation{Code: wswatch.CloseBadText, Reason: "invalid compressed data: " + err.Error()}
	}
	return nil
}
