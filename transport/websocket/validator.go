package websocket

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A protocolError is a violation of the protocol by the peer, and the close code that reports
// it to the peer.
type protocolError struct {
	code   closeCode
	reason string
}

// Error returns the code and the reason.
func (e *protocolError) Error() string { return fmt.Sprintf("close %d: %s", e.code, e.reason) }

func errMessageTooBig(limit int64) *protocolError {
	return &protocolError{closeTooBig, fmt.Sprintf("a message has more than %d bytes", limit)}
}

// A validator checks incoming frames before a library reads them. The libraries check different
// rules, buffer a frame before they reject it, or disconnect without a close frame. A validator
// inspects only the headers of frames.
type validator struct {
	// Immutable after construction.
	fromClient bool  // the peer is a client: it must mask its frames, and send few messages
	maxMessage int64 // the maximum number of bytes of a message, before decompression
	deflate    bool  // messages may be compressed

	// Owned by the reader.
	header      [maxHeader]byte
	headerLen   int   // the number of bytes in header; zero between headers
	payloadLeft int64 // the missing bytes of the frame, including its mask
	messageLen  int64 // the number of payload bytes in the message so far
	fragmented  bool  // more fragments of the message must follow
	inMessage   bool  // the current frame belongs to a message; otherwise it is a control frame
	closed      bool  // a close frame has begun
	minuteLen   int64 // the bytes of messages since minuteStart; counted only for clients
	minuteStart time.Time
	err         *protocolError
}

// validate checks the next bytes from the connection and returns the number of bytes that the
// library may read. After an error no more bytes may be read, and after a close frame none
// either, because a peer must not send any (rfc6455#section-5.5.1).
func (v *validator) validate(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	valid := 0 // the length of the valid prefix of p
	for i := 0; i < len(p); {
		switch {
		case v.payloadLeft > 0:
			n := min(v.payloadLeft, int64(len(p)-i))
			v.payloadLeft -= n
			i += int(n)
		case v.closed:
			return valid, nil
		default:
			if v.err = v.addHeaderByte(p[i]); v.err != nil {
				return valid, v.err
			}
			i++
		}
		if v.headerLen == 0 {
			valid = i
		}
	}
	return len(p), nil
}

// isUnfinished reports whether the peer has begun a frame or a message without finishing it.
func (v *validator) isUnfinished() bool { return v.headerLen > 0 || v.payloadLeft > 0 || v.fragmented }

// isMessageUnfinished reports whether the peer has begun a message, or a header that may belong
// to a message, without finishing it.
func (v *validator) isMessageUnfinished() bool {
	return v.headerLen > 0 || v.payloadLeft > 0 && v.inMessage || v.fragmented
}

// addHeaderByte checks each part of a header as soon as it is complete, so that the library
// does not reject it first: first the two bytes with the flags, then the length. After the last
// byte of the header the payload begins.
func (v *validator) addHeaderByte(b byte) *protocolError {
	v.header[v.headerLen] = b
	v.headerLen++
	if v.headerLen == 2 {
		if err := v.checkFlags(); err != nil {
			return err
		}
	}
	if v.headerLen < 2 || v.headerLen < v.headerSize() {
		return nil
	}
	length, err := v.length()
	if err != nil {
		return err
	}
	if v.inMessage {
		if err := v.addFragment(length); err != nil {
			return err
		}
	}
	v.headerLen, v.payloadLeft = 0, length
	v.closed = v.header[0]&bitsOpcode == opClose
	if v.fromClient {
		v.payloadLeft += maskSize
	}
	return nil
}

// headerSize returns the size of the header, without the mask. Its first two bytes must be
// present.
func (v *validator) headerSize() int {
	switch v.header[1] & bitsLength {
	case 126:
		return 2 + 2
	case 127:
		return 2 + 8
	}
	return 2
}

// checkFlags checks the first two bytes of a header.
func (v *validator) checkFlags() *protocolError {
	first, second := v.header[0], v.header[1]
	opcode, final, length := first&bitsOpcode, first&bitFin != 0, second&bitsLength
	isControl := opcode&bitControl != 0
	reserved := byte(bitsRSV)
	if v.deflate && (opcode == opText || opcode == opBinary) {
		reserved &^= bitRSV1 // only in the first frame of a message: rfc7692#section-6.1
	}
	switch {
	case first&reserved != 0:
		// "MUST be 0 unless an extension is negotiated": rfc6455#section-5.2.
		return &protocolError{closeProtocol, "reserved bits are set"}
	case second&bitMask != 0 != v.fromClient:
		// "A client MUST mask all frames", "A server MUST NOT mask any frames":
		// rfc6455#section-5.1.
		return &protocolError{closeProtocol, "a client must mask its frames, and a server must not"}
	case opcode > opBinary && opcode < opClose || opcode > opPong:
		return &protocolError{closeProtocol, "unknown opcode"}
	case !isControl && (opcode == opContinuation) != v.fragmented:
		return &protocolError{closeProtocol, "a continuation frame outside a message, or a new message within another"}
	case isControl && (!final || length > maxControl):
		// rfc6455#section-5.5 forbids both.
		return &protocolError{closeProtocol, "a control frame is fragmented or longer than 125 bytes"}
	case opcode == opClose && length == 1:
		return &protocolError{closeProtocol, "a close frame with an incomplete code"}
	}
	v.inMessage = !isControl
	return nil
}

// length returns the length of the payload, without the mask.
func (v *validator) length() (int64, *protocolError) {
	switch v.header[1] & bitsLength {
	case 126:
		return int64(binary.BigEndian.Uint16(v.header[2:])), nil
	case 127:
		n := binary.BigEndian.Uint64(v.header[2:])
		if n>>63 != 0 {
			return 0, &protocolError{closeProtocol, "a length of 2^63 or more"}
		}
		return int64(n), nil
	}
	return int64(v.header[1] & bitsLength), nil
}

// addFragment adds a frame to the current message, or starts a new message with it.
func (v *validator) addFragment(length int64) *protocolError {
	if !v.fragmented {
		v.messageLen = 0
	}
	if length > v.maxMessage-v.messageLen {
		return errMessageTooBig(v.maxMessage)
	}
	v.messageLen += length
	v.fragmented = v.header[0]&bitFin == 0
	if v.fromClient {
		return v.addToMinute(int64(v.headerLen) + maskSize + length)
	}
	return nil
}

// addToMinute counts the bytes of a frame that belongs to a message.
func (v *validator) addToMinute(n int64) *protocolError {
	if now := time.Now(); now.Sub(v.minuteStart) >= time.Minute {
		v.minuteStart, v.minuteLen = now, 0
	}
	if v.minuteLen += n; v.minuteLen > maxInbound {
		return &protocolError{closePolicy, fmt.Sprintf("a client must not send more than %d bytes of messages in a minute", maxInbound)}
	}
	return nil
}
