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

// A gate checks incoming frames before a library sees them, because the libraries check different things, buffer before they
// refuse, or hang up without a close frame. It looks at headers alone and keeps nothing but the one it is in.
type gate struct {
	// Immutable after construction.
	fromClient bool  // the peer is a client: its frames are masked, and it has nothing to say
	limit      int64 // how many bytes a message may have

	// Owned by the reader.
	header  [maxHeader]byte
	have    int   // bytes of header that are there
	left    int64 // bytes of the frame's payload that are still to come
	message int64 // bytes of the message so far
	open    bool  // a fragmented message is not finished
	data    bool  // the frame is one of a message
	broken  *violation
}

// check takes the next bytes of the connection and returns how many may pass. After a violation nothing passes any more.
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
		g.header[g.have] = p[i]
		g.have++
		i++
		if g.have < g.headerSize() {
			continue
		}
		if g.broken = g.frame(); g.broken != nil {
			return start, g.broken
		}
		g.have = 0
		if g.left == 0 {
			start = i
		}
	}
	return len(p), nil
}

// headerSize returns how many bytes the header has, as far as what is there tells.
func (g *gate) headerSize() int {
	if g.have < 2 {
		return 2
	}
	n := 2
	switch g.header[1] & bitsLength {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if g.header[1]&bitMask != 0 {
		n += 4
	}
	return n
}

// frame judges a whole header and enters the payload.
func (g *gate) frame() *violation {
	first, second := g.header[0], g.header[1]
	op, fin := first&bitsOpcode, first&bitFin != 0
	length, v := g.length()
	switch {
	case v != nil:
		return v
	case first&bitsRSV != 0:
		// "MUST be 0 unless an extension is negotiated": rfc6455#section-5.2.
		return &violation{closeProtocol, "reserved bits are set"}
	case second&bitMask != 0 != g.fromClient:
		// "A client MUST mask all frames", "a server MUST NOT mask any": rfc6455#section-5.1.
		return &violation{closeProtocol, "frame is masked where it must not be, or not where it must"}
	case op&bitControl != 0:
		return g.control(op, fin, length)
	case op > opBinary:
		return &violation{closeProtocol, "unknown opcode"}
	}
	return g.dataFrame(op, fin, length)
}

func (g *gate) length() (int64, *violation) {
	switch n := g.header[1] & bitsLength; n {
	case 126:
		return int64(binary.BigEndian.Uint16(g.header[2:])), nil
	case 127:
		n := binary.BigEndian.Uint64(g.header[2:])
		if n>>63 != 0 {
			return 0, &violation{closeProtocol, "length with its most significant bit set"}
		}
		return int64(n), nil
	default:
		return int64(n), nil
	}
}

func (g *gate) control(op byte, fin bool, length int64) *violation {
	switch {
	case op > opPong:
		return &violation{closeProtocol, "unknown opcode"}
	case !fin || length > maxControl:
		// rfc6455#section-5.5
		return &violation{closeProtocol, "control frame is fragmented or longer than 125 bytes"}
	case op == opClose && length == 1:
		return &violation{closeProtocol, "close frame with half a code"}
	}
	g.left, g.data = length, false
	return nil
}

func (g *gate) dataFrame(op byte, fin bool, length int64) *violation {
	if (op == opContinuation) != g.open {
		return &violation{closeProtocol, "continuation of nothing, or a new message within another"}
	}
	if !g.open {
		g.message = 0
	}
	if length > g.limit-g.message {
		return &violation{closeTooBig, fmt.Sprintf("message of more than %d bytes", g.limit)}
	}
	if g.fromClient {
		return &violation{closePolicy, "a watch takes no messages"}
	}
	g.message += length
	g.left, g.data, g.open = length, true, !fin
	return nil
}

// within reports whether the peer has begun a message that it has not finished.
func (g *gate) within() bool { return g.open || g.data && g.left > 0 || g.have > 0 }
