// Package wsframe encodes and decodes single WebSocket frames (RFC 6455). Tests can also build
// invalid frames.
package wsframe

import (
	"bytes"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
)

// Opcodes and bits in the first byte of a frame (RFC 6455, section 5.2).
const (
	OpContinuation, OpText, OpBinary, OpClose, OpPing, OpPong = 0, 1, 2, 8, 9, 10

	Final, RSV1, RSV2, RSV3 = 0x80, 0x40, 0x20, 0x10
)

// Close codes of RFC 6455, section 7.4.1.
const (
	CloseNormal        = 1000
	CloseGoingAway     = 1001
	CloseProtocolError = 1002
	CloseInvalidData   = 1007
	// A watch server closes with ClosePolicyViolation if the client sends too much data in a
	// minute, and with CloseTooBig if one message exceeds the read limit.
	ClosePolicyViolation = 1008
	CloseTooBig          = 1009
	CloseInternalError   = 1011
)

// A Frame is one WebSocket frame.
type Frame struct {
	First   byte // FIN, RSV1 to RSV3, and the opcode
	Masked  bool
	Payload []byte // unmasked
}

// Opcode returns the opcode of the first byte.
func (f Frame) Opcode() byte { return f.First & 0x0f }

// Unfragmented returns an unfragmented message or control frame.
func Unfragmented(op byte, payload string) Frame {
	return Frame{First: Final | op, Payload: []byte(payload)}
}

// Close returns a close frame with a code and no reason.
func Close(code uint16) Frame {
	return Frame{First: Final | OpClose, Payload: binary.BigEndian.AppendUint16(nil, code)}
}

// maskingKey is the key of every masked frame that this package encodes. The key is fixed, so that
// tests are reproducible.
var maskingKey = [4]byte{0xA5, 0x5A, 0x0F, 0xF0}

// Bytes returns the encoded frame.
func (f Frame) Bytes() []byte {
	b := f.header(len(f.Payload))
	if f.Masked {
		return append(b, Mask(f.Payload)...)
	}
	return append(b, f.Payload...)
}

// MaskedHeader returns the header and masking key of a masked frame with n bytes of payload.
func MaskedHeader(first byte, n int) []byte { return Frame{First: first, Masked: true}.header(n) }

func (f Frame) header(n int) []byte {
	b := []byte{f.First}
	switch {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	if f.Masked {
		b[1] |= 0x80
		b = append(b, maskingKey[:]...)
	}
	return b
}

// Mask masks payload as a client does. The payload may be only the start of a frame's payload.
func Mask(payload []byte) []byte {
	masked := make([]byte, len(payload))
	xor(masked, payload, maskingKey)
	return masked
}

// xor masks or unmasks the bytes of src with key, and stores the result in dst. Both slices have
// the same length, and may be the same slice.
func xor(dst, src []byte, key [4]byte) {
	subtle.XORBytes(dst, src, bytes.Repeat(key[:], (len(src)+3)/4))
}

// maxPayload is the largest payload that Read accepts.
const maxPayload = 64 << 20

// Read reads one frame and removes its mask.
func Read(r io.Reader) (f Frame, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return f, err
	}
	f.First, f.Masked = head[0], head[1]&0x80 != 0
	length := uint64(head[1] &^ 0x80)
	if extra := map[uint64]int{126: 2, 127: 8}[length]; extra > 0 {
		clear(head[:])
		if _, err := io.ReadFull(r, head[8-extra:]); err != nil {
			return f, err
		}
		length = binary.BigEndian.Uint64(head[:])
	}
	if length > maxPayload {
		return f, fmt.Errorf("WebSocket frame of %d bytes: must be at most %d", length, maxPayload)
	}
	var key [4]byte
	if f.Masked {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return f, err
		}
	}
	f.Payload = make([]byte, length)
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return f, err
	}
	if f.Masked {
		xor(f.Payload, f.Payload, key)
	}
	return f, nil
}

// ReadCloseCode reads frames up to the first close frame. It returns the code in that frame, or
// zero if the frame contains no code.
func ReadCloseCode(r io.Reader) (int, error) {
	for {
		f, err := Read(r)
		switch {
		case err != nil:
			return 0, fmt.Errorf("no close frame: %w", err)
		case f.Opcode() == OpClose && len(f.Payload) >= 2:
			return int(binary.BigEndian.Uint16(f.Payload)), nil
		case f.Opcode() == OpClose:
			return 0, nil
		}
	}
}

// AcceptKey returns the Sec-WebSocket-Accept header for a Sec-WebSocket-Key (RFC 6455,
// section 4.2.2).
func AcceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
