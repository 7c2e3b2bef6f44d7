package websocket

import (
	"bytes"

	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// deflatedEnvelope is like framedEnvelope, for peers that agreed to permessage-deflate.
var deflatedEnvelope = &transport.Envelope{
	Messages: true, Wrap: appendDeflatedFrame, Compression: permessageDeflate,
	History: &transport.MessageHistory{Wrap: appendBlocks, Entered: isCompressed, Private: framedEnvelope},
}

// appendDeflatedFrame appends a message as one frame. A message that compression does not make
// smaller stays uncompressed, which rfc7692#section-6.1 allows.
func appendDeflatedFrame(dst, payload []byte, isBinary bool) []byte {
	if len(payload) >= compress.MinSize {
		compressed := compress.AppendDeflate(make([]byte, 0, len(payload)), payload)
		if len(compressed)-len(compress.SyncMarker) < len(payload) {
			return appendBlocks(dst, compressed, isBinary)
		}
	}
	return appendMessageFrame(dst, payload, isBinary)
}

// appendBlocks appends a compressed message as one frame.
func appendBlocks(dst, blocks []byte, isBinary bool) []byte {
	// A message omits the marker: rfc7692#section-7.2.1.
	blocks = blocks[:len(blocks)-len(compress.SyncMarker)]
	dst = appendHeader(dst, bitFin|bitRSV1|opcode(isBinary), len(blocks))
	return append(dst, blocks...)
}

// isCompressed reports whether a frame with a whole message is compressed.
func isCompressed(frame []byte) bool { return frame[0]&bitRSV1 != 0 }

// windowSize is the maximum distance of a reference to earlier text: RFC 1951, section 2.
const windowSize = 32 << 10

// A messageHistory is the text that the next compressed message may refer to: the end of the text
// of all compressed messages before it (rfc7692#section-7.2.2).
type messageHistory []byte

// add adds the text of a compressed message.
func (h *messageHistory) add(text []byte) {
	text = text[max(0, len(text)-windowSize):]
	if excess := len(*h) + len(text) - windowSize; excess > 0 {
		*h = append((*h)[:0], (*h)[excess:]...)
	}
	*h = append(*h, text...)
}

// inflate decompresses a message into dst. The message may refer to history. The error is a
// *wswatch.Violation. inflate may overwrite the memory between the length and the capacity of
// message.
func inflate(dst *bytes.Buffer, message, history []byte, limit int64) error {
	// Append the marker that the message omits: rfc7692#section-7.2.2.
	message = append(message, compress.SyncMarker...)
	if err := compress.Inflate(dst, message, history, limit); err != nil {
		return &wswatch.Violation{Code: wswatch.CloseBadText, Reason: "invalid compressed data: " + err.Error()}
	}
	if int64(dst.Len()) > limit {
		return wswatch.ErrTooBig(limit)
	}
	return nil
}
