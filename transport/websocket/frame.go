package websocket

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
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
	maskSize   = 4
	// maxHeader is the maximum size of the header of a frame.
	maxHeader = 2 + 8 + maskSize
)

// framedEnvelope makes each event a message of one frame.
var framedEnvelope = &transport.Envelope{Messages: true, Wrap: appendMessageFrame}

// appendMessageFrame appends a message as one frame of a server. Such a frame has no mask
// (rfc6455#section-5.1), so all watchers share its bytes.
func appendMessageFrame(dst, payload []byte, isBinary bool) []byte {
	dst = appendHeader(dst, bitFin|opcode(isBinary), len(payload))
	return append(dst, payload...)
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
	var key [maskSize]byte
	binary.NativeEndian.PutUint32(key[:], rand.Uint32())
	dst = append(dst, bitFin|op, bitMask|byte(len(payload)))
	dst = append(append(dst, key[:]...), payload...)
	unmask(dst[len(dst)-len(payload):], key[:], 0)
	return dst
}

func appendClose(dst []byte, code int, reason string, masked bool) []byte {
	var payload []byte
	if code != wswatch.CloseNoStatus {
		payload = append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
	}
	return appendControl(dst, opClose, payload, masked)
}

// unmask masks or unmasks a part of a payload: rfc6455#section-5.3. offset is the position of p in
// the payload.
func unmask(p, key []byte, offset int64) {
	for i := range p {
		p[i] ^= key[(offset+int64(i))%maskSize]
	}
}
