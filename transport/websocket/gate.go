package websocket

import (
	"encoding/binary"
	"fmt"
)

// A violation is what a peer did against the protocol, and the close code that tells it so.
type violation struct {
	code   closeCode
	reason string
}

// Error returns the code and the reason.
func (v *violation) Error() string { return fmt.Sprintf("close %d: %s", v.code, v.reason) }

func tooBig(limit int64) *violation {
	return &violation{closeTooBig, fmt.Sprintf("a message has more than %d bytes", limit)}
}

// A gate checks incoming frames before a library sees them, because the libraries check different things, buffer before they
// refuse, or hang up without a close frame. It looks at headers alone and keeps nothing but the one it is in.
type gate struct {
	// Immutable after construction.
	fromClient bool  // the peer is a client: its frames are masked, and it has nothing to say
	limit      int64 // how many bytes a message may have, compressed where it is
	deflate    bool  // messages may be compressed

	// Owned by the reader.
	header  [maxHeader]byte
	have    int   // bytes of header that are there
	left    int64 // bytes of the frame that are still to come, its mask among them
	message int64 // bytes of the message so far
	open    bool  // a fragmented message is not finished
	data    bool  // the frame is one of a message
	last    bool  // the frame is a close frame
	broken  *violation
}

// check takes the next bytes of the connection and returns how many may pass. After a violation nothing passes any more, nor after a close
// frame, of what a peer should not have sent (rfc6455#section-5.5.1).
func (g *gate) check(p []byte) (int, error) {
	if g.broken != nil {
		return 0, g.broken
	}
	start := 0 // of the frame, as far as it lies in p
	for i := 0; i < len(p); {
		if g.left > 0 {
			n := min(g.left, int64(len(p)-i))
			g.left -= n
			i += int(n)
			start = i
			continue
		}
		if g.last {
			return start, nil
		}
		g.header[g.have] = p[i]
		g.have++
		i++
		if g.broken = g.judge(); g.broken != nil {
			return start, g.broken
		}
		if g.have == 0 && g.left == 0 {
			start = i
		}
	}
	return len(p), nil
}

// isWithin reports whether a frame or a message has begun and not ended.
func (g *gate) isWithin() bool { return g.have > 0 || g.left > 0 || g.open }

// judge looks at a header as soon as there is something to see, because a library does: the bits first, then the length. At the end
// of the header it enters the frame.
func (g *gate) judge() *violation {
	if g.have == 2 {
		if v := g.bits(); v != nil {
			return v
		}
	}
	if g.have < 2 || g.have < g.headerSize() {
		return nil
	}
	length, v := g.length()
	if v == nil && g.header[0]&bitControl == 0 {
		v = g.dataFrame(length)
	}
	if v != nil {
		return v
	}
	g.have, g.left, g.last = 0, length, g.header[0]&bitsOpcode == opClose
	if g.fromClient {
		g.left += 4 // the mask
	}
	return nil
}

// headerSize returns how many bytes the header has without a mask.
func (g *gate) headerSize() int {
	switch g.header[1] & bitsLength {
	case 126:
		return 2 + 2
	case 127:
		return 2 + 8
	}
	return 2
}

// bits judges the first two bytes.
func (g *gate) bits() *violation {
	first, second := g.header[0], g.header[1]
	op, fin, length := first&bitsOpcode, first&bitFin != 0, second&bitsLength
	reserved := byte(bitsRSV)
	if g.deflate && (op == opText || op == opBinary) {
		reserved &^= bitRSV1 // on the first frame of a message alone: rfc7692#section-6.1
	}
	switch {
	case first&reserved != 0:
		// "MUST be 0 unless an extension is negotiated": rfc6455#section-5.2.
		return &violation{closeProtocol, "reserved bits are set"}
	case second&bitMask != 0 != g.fromClient:
		// "A client MUST mask all frames", "a server MUST NOT mask any": rfc6455#section-5.1.
		return &violation{closeProtocol, "a frame is masked where it must not be, or not where it must"}
	case op > opBinary && op < opClose || op > opPong:
		return &violation{closeProtocol, "unknown opcode"}
	case op&bitControl == 0 && (op == opContinuation) != g.open:
		return &violation{closeProtocol, "continuation of nothing, or a new message within another"}
	case op&bitControl != 0 && (!fin || length > maxControl):
		// rfc6455#section-5.5
		return &violation{closeProtocol, "a control frame is fragmented or longer than 125 bytes"}
	case op == opClose && length == 1:
		return &violation{closeProtocol, "a close frame with half a code"}
	}
	g.data = op&bitControl == 0
	return nil
}

func (g *gate) length() (int64, *violation) {
	switch g.header[1] & bitsLength {
	case 126:
		return int64(binary.BigEndian.Uint16(g.header[2:])), nil
	case 127:
		n := binary.BigEndian.Uint64(g.header[2:])
		if n>>63 != 0 {
			return 0, &violation{closeProtocol, "length with its most significant bit set"}
		}
		return int64(n), nil
	}
	return int64(g.header[1] & bitsLength), nil
}

// dataFrame adds a frame to the message.
func (g *gate) dataFrame(length int64) *violation {
	if !g.open {
		g.message = 0
	}
	if length > g.limit-g.message {
		return tooBig(g.limit)
	}
	if g.fromClient {
		return &violation{closePolicy, "a watch takes no messages"}
	}
	g.message += length
	g.open = g.header[0]&bitFin == 0
	return nil
}

// within reports whether the peer has begun a message that it has not finished.
func (g *gate) within() bool { return g.open || g.data && g.left > 0 || g.have > 0 }
