package mutants

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch/conformance/internal/wsframe"
)

// A frame is a WebSocket frame. ping, pong, text, closing, part and last build frames.
type frame = wsframe.Frame

func ping(payload string) frame    { return wsframe.Unfragmented(wsframe.OpPing, payload) }
func pong(payload string) frame    { return wsframe.Unfragmented(wsframe.OpPong, payload) }
func text(payload string) frame    { return wsframe.Unfragmented(wsframe.OpText, payload) }
func closing(payload string) frame { return wsframe.Unfragmented(wsframe.OpClose, payload) }

// part returns a fragment of a message that is not the last one.
func part(op byte, payload string) frame { return frame{First: op, Payload: []byte(payload)} }

// last returns the last fragment of a message.
func last(payload string) frame { return wsframe.Unfragmented(wsframe.OpContinuation, payload) }

// normalClose is a close frame with code 1000.
var normalClose = wsframe.Close(wsframe.CloseNormal)

// Expected close codes.
var (
	protocolError = []int{wsframe.CloseProtocolError}
	normalCode    = []int{wsframe.CloseNormal}
)

// A trial is a sequence of frames that one end sends, and the expected reaction of the other
// end, which is under test.
type trial struct {
	name string
	sent []frame
	// If raw is not nil, it is sent instead of the frames in sent.
	raw []byte
	// byteByByte sends each byte in a separate write.
	byteByByte bool

	// pongs are the payloads of the expected pongs, in order. All but the last may be
	// missing.
	pongs []string
	// codes are the acceptable close codes; 0 stands for a close frame without a code. If
	// empty, the stream must continue.
	codes []int
	// events is the number of events that a client must return before the stream ends.
	// clean means that the client must report a clean end; it matters only if codes is
	// not empty.
	events int
	clean  bool
}

func (t *trial) rule() string {
	switch {
	case len(t.codes) == 0:
		return fmt.Sprintf("%s: the stream continues", t.name)
	case t.clean:
		return fmt.Sprintf("%s: the stream ends cleanly", t.name)
	}
	return fmt.Sprintf("%s: the connection is closed with %d", t.name, t.codes)
}

// bytes returns the bytes to send. masked is true for frames of a client.
func (t *trial) bytes(masked bool) []byte {
	if t.raw != nil {
		return t.raw
	}
	var all []byte
	for _, f := range t.sent {
		f.Masked = f.Masked != masked // in a trial, Masked inverts the correct masking
		all = append(all, f.Bytes()...)
	}
	return all
}

// writes returns the bytes to send, split into writes.
func (t *trial) writes(masked bool) [][]byte {
	all := t.bytes(masked)
	if t.byteByByte {
		return slices.Collect(slices.Chunk(all, 1))
	}
	return [][]byte{all}
}

// matchPong searches t.pongs for text, starting at index done. It returns the index after the
// match, and whether there was a match. It may skip pongs, because an endpoint may respond to only
// the last of several pings (RFC 6455, section 5.5.3).
func (t *trial) matchPong(text string, done int) (int, bool) {
	i := slices.Index(t.pongs[done:], text)
	return done + i + 1, i >= 0
}
