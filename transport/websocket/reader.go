package websocket

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A part is a control frame, or a part of the payload of a message. The zero part means that more
// bytes are needed.
type part struct {
	op         byte   // opText or opBinary, or the opcode of a control frame
	payload    []byte // valid until the next call of next
	final      bool   // this is the last part of its message
	compressed bool   // the message is compressed
	frameSize  int64  // in the first part of a data frame, the size of the frame; otherwise 0
}

// A frameReader parses frames and checks each part of a header as soon as it is complete. It reads
// from slices of the caller, so an idle stream needs no buffer.
type frameReader struct {
	// Immutable after construction.
	fromClient bool  // the peer is a client, which must mask its frames
	deflate    bool  // messages may be compressed
	maxMessage int64 // the maximum number of bytes of a message, before decompression

	header     [maxHeader]byte
	headerSize int    // the number of bytes in header
	isHeader   bool   // header is incomplete
	started    bool   // next has returned a part of the current frame
	size, left int64  // the length of the payload, and the number of bytes that are missing
	control    []byte // the payload of an incomplete control frame

	message messageState
}

// A messageState is the part of a message that has arrived.
type messageState struct {
	first     part  // the type of the message, and whether it is compressed
	size      int64 // the number of payload bytes so far
	continues bool  // more frames of the message must follow
}

func newFrameReader(fromClient, deflate bool, maxMessage int64) frameReader {
	return frameReader{fromClient: fromClient, deflate: deflate, maxMessage: maxMessage, isHeader: true}
}

// next parses the beginning of p, and returns the next part and the rest of p. It unmasks the
// payload in place. The error is a *wswatch.Violation.
func (r *frameReader) next(p []byte) (part, []byte, error) {
	for r.isHeader {
		if len(p) == 0 {
			return part{}, nil, nil
		}
		if err := r.addHeaderByte(p[0]); err != nil {
			return part{}, nil, err
		}
		p = p[1:]
	}
	payload := p[:min(int64(len(p)), r.left)]
	if r.fromClient {
		unmask(payload, r.header[r.headerSize-maskSize:r.headerSize], r.size-r.left)
	}
	p = p[len(payload):]
	r.left -= int64(len(payload))
	next := r.message.first
	if r.opcode()&bitControl != 0 {
		if r.control = append(r.control, payload...); r.left > 0 {
			return part{}, nil, nil
		}
		next = part{op: r.opcode(), payload: r.control}
		r.control = nil
	} else {
		next.payload, next.final = payload, r.left == 0 && !r.message.continues
		if !r.started {
			next.frameSize = int64(r.headerSize) + r.size
		}
	}
	r.started = true
	if r.left == 0 {
		r.isHeader, r.headerSize, r.started = true, 0, false
	}
	return next, p, nil
}

// isMessageUnfinished reports whether the peer has begun a message, or a header that may belong
// to a message, without finishing it.
func (r *frameReader) isMessageUnfinished() bool {
	if r.isHeader {
		return r.headerSize > 0 || r.message.continues
	}
	return r.message.continues || r.opcode()&bitControl == 0
}

// isAtMessage reports whether the next frame is not a part of a message that has begun.
func (r *frameReader) isAtMessage() bool {
	return r.isHeader && r.headerSize == 0 && !r.message.continues
}

// beginsWithMessage reports whether p begins with a complete frame of a server that is a message.
func beginsWithMessage(p []byte) bool {
	if len(p) < 2 || p[0]&bitFin == 0 || p[0]&bitControl != 0 {
		return false
	}
	size, p := uint64(p[1]&bitsLength), p[2:]
	switch {
	case size == 126 && len(p) >= 2:
		size, p = uint64(binary.BigEndian.Uint16(p)), p[2:]
	case size == 127 && len(p) >= 8:
		size, p = binary.BigEndian.Uint64(p), p[8:]
	case size > 125:
		return false
	}
	return uint64(len(p)) >= size
}

func (r *frameReader) opcode() byte { return r.header[0] & bitsOpcode }

// addHeaderByte adds b to the header. It checks the first two bytes as soon as the header has both,
// and the length as soon as it is complete.
func (r *frameReader) addHeaderByte(b byte) error {
	r.header[r.headerSize] = b
	r.headerSize++
	if r.headerSize == 2 {
		if err := r.checkFlags(); err != nil {
			return err
		}
	}
	lengthEnd := r.lengthEnd()
	if r.headerSize == lengthEnd {
		if err := r.addLength(); err != nil {
			return err
		}
	}
	if r.fromClient {
		lengthEnd += maskSize
	}
	r.isHeader = r.headerSize < lengthEnd
	return nil
}

// lengthEnd returns the offset of the end of the length in the header.
func (r *frameReader) lengthEnd() int {
	if r.headerSize >= 2 {
		switch r.header[1] & bitsLength {
		case 126:
			return 2 + 2
		case 127:
			return 2 + 8
		}
	}
	return 2
}

// checkFlags checks the first two bytes of a header.
func (r *frameReader) checkFlags() error {
	first, second, opcode := r.header[0], r.header[1], r.opcode()
	isControl := opcode&bitControl != 0
	reserved := byte(bitsRSV)
	if r.deflate && (opcode == opText || opcode == opBinary) {
		reserved &^= bitRSV1 // permitted in the first frame of a message: rfc7692#section-6.1
	}
	switch {
	case first&reserved != 0:
		// "MUST be 0 unless an extension is negotiated": rfc6455#section-5.2.
		return violation("reserved bits are set")
	case second&bitMask != 0 != r.fromClient:
		// "A client MUST mask all frames", "A server MUST NOT mask any frames":
		// rfc6455#section-5.1.
		return violation("a client must mask its frames, and a server must not")
	case opcode > opBinary && opcode < opClose || opcode > opPong:
		return violation("unknown opcode")
	case !isControl && (opcode == opContinuation) != r.message.continues:
		return violation("a continuation frame outside a message, or a new message within another")
	case isControl && (first&bitFin == 0 || second&bitsLength > maxControl):
		// rfc6455#section-5.5 forbids both.
		return violation("a control frame is fragmented or longer than 125 bytes")
	case opcode == opClose && second&bitsLength == 1:
		return violation("a close frame with an incomplete code")
	}
	return nil
}

func violation(reason string) error {
	return &wswatch.Violation{Code: wswatch.CloseProtocol, Reason: reason}
}

// addLength sets the length of the payload. If the frame is a data frame, addLength also adds this
// length to the length of the message, and updates the state of the message. It accepts a length in
// more bytes than necessary, which RFC 6455, section 5.2, forbids to send: it is unambiguous, and
// gorilla and nhooyr accept it too.
func (r *frameReader) addLength() error {
	switch r.header[1] & bitsLength {
	case 126:
		r.size = int64(binary.BigEndian.Uint16(r.header[2:]))
	case 127:
		if r.size = int64(binary.BigEndian.Uint64(r.header[2:])); r.size < 0 {
			return violation("a length of 2^63 or more")
		}
	default:
		r.size = int64(r.header[1] & bitsLength)
	}
	r.left = r.size
	if r.opcode()&bitControl != 0 {
		return nil
	}
	if r.opcode() != opContinuation {
		r.message = messageState{first: part{op: r.opcode(), compressed: r.header[0]&bitRSV1 != 0}}
	}
	if r.size > r.maxMessage-r.message.size {
		return wswatch.ErrTooBig(r.maxMessage)
	}
	r.message.size += r.size
	r.message.continues = r.header[0]&bitFin == 0
	return nil
}

// closeError returns the close frame with the given payload, or a violation if the payload is
// invalid.
func closeError(payload []byte) error {
	if len(payload) < 2 {
		return &wswatch.CloseFrame{Code: wswatch.CloseNoStatus}
	}
	c := &wswatch.CloseFrame{Code: int(binary.BigEndian.Uint16(payload)), Reason: string(payload[2:])}
	switch {
	case !isValidCode(c.Code):
		return violation("an invalid close code")
	case !utf8.ValidString(c.Reason):
		return violation("a close reason that is not UTF-8") // rfc6455#section-5.5.1
	}
	return c
}

// isValidCode reports whether a close frame may have the code: rfc6455#section-7.4, and the
// registry of IANA, which has added 1012 to 1014.
func isValidCode(code int) bool {
	return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) || code >= 3000 && code <= 4999
}
