package websocket

import (
	"bytes"

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

// inflate decompresses a message into dst. The error is a *wswatch.Violation. inflate may append to
// message.
func inflate(dst *bytes.Buffer, message []byte, limit int64) error {
	message = append(message, compress.SyncMarker...) // rfc7692#section-7.2.2
	if err := compress.Inflate(dst, message, limit); err != nil {
		return &wswatch.Violation{Code: wswatch.CloseBadText, Reason: "invalid compressed data: " + err.Error()}
	}
	if int64(dst.Len()) > limit {
		return wswatch.ErrTooBig(limit)
	}
	return nil
}
