package websocket

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/transport"
)

// The opcodes of RFC 6455 section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// The bits of the first two bytes of a frame.
const (
	bitFin     = 0x80
	bitsRSV    = 0x70
	bitRSV1    = 0x40 // the message is compressed: rfc7692#section-6
	bitsOpcode = 0x0F
	bitControl = 0x08
	bitMask    = 0x80
	bitsLength = 0x7F
)

const (
	// maxControl is the maximum size of the payload of a control frame: rfc6455#section-5.5.
	maxControl = 125
	// maxHeader is the maximum size of the header of a frame, without the mask.
	maxHeader = 2 + 8
	maskSize  = 4
)

// A closeCode is a status code of RFC 6455 section 7.4.1.
type closeCode uint16

const (
	closeNormal    closeCode = 1000
	closeGoingAway closeCode = 1001
	closeProtocol  closeCode = 1002
	closeNoStatus  closeCode = 1005 // stands for a close frame without a code; never sent
	closeBadText   closeCode = 1007
	closePolicy    closeCode = 1008
	closeTooBig    closeCode = 1009
)

// framedEnvelope and deflatedEnvelope make complete frames, which are written to the connection
// below the library. bareEnvelope is for a library that makes the frames itself.
var (
	framedEnvelope   = &transport.Envelope{Messages: true, Wrap: appendMessageFrame}
	deflatedEnvelope = &transport.Envelope{Messages: true, Wrap: appendDeflatedFrame, Compression: permessageDeflate}
	bareEnvelope     = &transport.Envelope{Messages: true}
)

// appendMessageFrame appends a message as one frame of a server. Such a frame has no mask
// (rfc6455#section-5.1), so all watchers share its bytes.
func appendMessageFrame(dst, payload []byte, isBinary bool) []byte {
	dst = appendHeader(dst, bitFin|opcode(isBinary), len(payload))
	return append(dst, payload...)
}

// appendDeflatedFrame is like appendMessageFrame, for peers that agreed to permessage-deflate.
// A message that compression does not make smaller stays uncompressed, which
// rfc7692#section-6.1 allows.
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

func opcode(isBinary bool) byte {
	if isBinary {
		return opBinary
	}
	return opText
}

// appendHeader appends the header of an unmasked frame with n bytes of payload.
// rfc6455#section-5.2 requires the shortest encoding of n.
func appendHeader(dst []byte, first byte, n int) []byte {
	switch {
	case n <= 125:
		return append(dst, first, byte(n))
	case n <= 0xFFFF:
		return binary.BigEndian.AppendUint16(append(dst, first, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, first, 127), uint64(n))
}

// appendControl appends a control frame, masked if a client sends it. It truncates a payload
// longer than maxControl.
func appendControl(dst []byte, op byte, payload []byte, masked bool) []byte {
	payload = payload[:min(len(payload), maxControl)]
	if !masked {
		return append(append(dst, bitFin|op, byte(len(payload))), payload...)
	}
	var key [4]byte
	binary.NativeEndian.PutUint32(key[:], rand.Uint32())
	dst = append(dst, bitFin|op, bitMask|byte(len(payload)))
	dst = append(dst, key[:]...)
	for i, b := range payload {
		dst = append(dst, b^key[i%4])
	}
	return dst
}

// appendClose appends a close frame.
func appendClose(dst []byte, code closeCode, reason string, masked bool) []byte {
	var payload []byte
	if code != closeNoStatus {
		payload = append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
	}
	return appendControl(dst, opClose, payload, masked)
}
