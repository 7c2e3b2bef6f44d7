package cases

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
)

// The opcodes of RFC 6455, section 5.2, and the bits of a frame's first byte.
const (
	opContinuation, opText, opBinary, opClose, opPing, opPong = 0, 1, 2, 8, 9, 10

	bitFinal, bitRSV1, bitRSV2, bitRSV3 = 0x80, 0x40, 0x20, 0x10
)

// Close codes of RFC 6455, section 7.4.1.
const (
	closedNormally  = 1000
	closedGoingAway = 1001
	closedProtocol  = 1002
	closedBadText   = 1007
	closedInternal  = 1011
)

// A wsFrame is one frame of a WebSocket.
type wsFrame struct {
	first   byte // the bits and the opcode
	masked  bool
	payload []byte // without the mask
}

func (f wsFrame) op() byte { return f.first & 0x0f }

// whole returns a message, or a control frame, in one frame.
func whole(op byte, payload string) wsFrame {
	return wsFrame{first: bitFinal | op, payload: []byte(payload)}
}

// closing returns a close frame.
func closing(code uint16) wsFrame {
	return wsFrame{first: bitFinal | opClose, payload: binary.BigEndian.AppendUint16(nil, code)}
}

// mask is what is put on by hand.
var mask = [4]byte{0xA5, 0x5A, 0x0F, 0xF0}

// bytes returns how the frame goes over the wire.
func (f wsFrame) bytes() []byte {
	b := []byte{f.first}
	switch n := len(f.payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	if !f.masked {
		return append(b, f.payload...)
	}
	b[1] |= 0x80
	b = append(b, mask[:]...)
	for i, c := range f.payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

// maxFrame is how large a frame the reader by hand takes.
const maxFrame = 64 << 20

func readFrame(r io.Reader) (f wsFrame, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return f, err
	}
	f.first, f.masked = head[0], head[1]&0x80 != 0
	length := uint64(head[1] &^ 0x80)
	if extra := map[uint64]int{126: 2, 127: 8}[length]; extra > 0 {
		clear(head[:])
		if _, err := io.ReadFull(r, head[8-extra:]); err != nil {
			return f, err
		}
		length = binary.BigEndian.Uint64(head[:])
	}
	if length > maxFrame {
		return f, fmt.Errorf("a frame of %d bytes", length)
	}
	var key [4]byte
	if f.masked {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return f, err
		}
	}
	f.payload = make([]byte, length)
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return f, err
	}
	for i := range f.payload {
		f.payload[i] ^= key[i%4]
	}
	return f, nil
}

// closeCode reads frames up to a close frame and returns its code; zero: it has none.
func closeCode(r io.Reader) (int, error) {
	for {
		f, err := readFrame(r)
		switch {
		case err != nil:
			return 0, fmt.Errorf("no close frame: %w", err)
		case f.op() == opClose && len(f.payload) >= 2:
			return int(binary.BigEndian.Uint16(f.payload)), nil
		case f.op() == opClose:
			return 0, nil
		}
	}
}

// acceptKey returns what answers the key of a handshake (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
