package framing

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
)

// LengthPrefixed is application/vnd.listwatch.json-prefixed: each event is its length in
// four bytes, big endian, followed by that number of bytes of JSON. Kubernetes frames
// protobuf in the same way.
type LengthPrefixed struct{}

var _ Framer = LengthPrefixed{}

const prefixSize = 4

// MediaType implements [Framer].
func (LengthPrefixed) MediaType() string { return "application/vnd.listwatch.json-prefixed" }

// AppendEvent implements [Framer].
func (LengthPrefixed) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	return AppendPrefixed(dst, e, appendBody)
}

// AppendPrefixed appends the message of e, which appendMessage appends, after its length in four
// bytes, big endian. A MessageFramer for which that is the form of a stream uses AppendPrefixed in
// its AppendEvent, and [NewPrefixedDecoder] in its NewDecoder.
func AppendPrefixed(
	dst []byte, e WatchEvent, appendMessage func(dst []byte, e WatchEvent) ([]byte, error),
) ([]byte, error) {
	out, err := appendMessage(append(dst, 0, 0, 0, 0), e)
	if err != nil {
		return dst, err
	}
	n := len(out) - len(dst) - prefixSize
	if n > math.MaxUint32 {
		return dst, encodeError(listwatch.Unsupported,
			fmt.Sprintf("the event has %d bytes, more than a length prefix can hold", n), nil)
	}
	binary.BigEndian.PutUint32(out[len(dst):], uint32(n))
	return out, nil
}

// NewDecoder implements [Framer]. The limit includes the prefix.
func (LengthPrefixed) NewDecoder(r io.Reader, limit int) Decoder {
	return newDecoder(r, limit, &prefixedReader{decode: readText})
}

// NewPrefixedDecoder returns a Decoder for a stream of messages as [AppendPrefixed] appends them.
// The limit includes the prefix; see [Framer]. decode decodes a message, and may keep it.
func NewPrefixedDecoder(r io.Reader, limit int, decode func(message []byte) (WatchEvent, error)) Decoder {
	return newDecoder(r, limit, &prefixedReader{decode: decode, keeps: true})
}

// A prefixedReader reads the events of a stream of messages with prefixes.
type prefixedReader struct {
	decode func(message []byte) (WatchEvent, error)
	keeps  bool   // decode keeps the message
	text   []byte // the current message; the buffer is reused unless decode keeps it
}

func (p *prefixedReader) mayHaveEvent(b []byte) bool {
	return len(b) > prefixSize && uint64(len(b)-prefixSize) >= uint64(binary.BigEndian.Uint32(b))
}

func (p *prefixedReader) readEvent(in *input) (WatchEvent, error) {
	var n uint32
	for range prefixSize {
		c, err := in.next()
		if err != nil {
			return WatchEvent{}, err
		}
		n = n<<8 | uint32(c)
	}
	if n == 0 {
		return WatchEvent{}, corrupt("the event has length 0", nil)
	}
	buffer := reuse(p.text)
	if p.keeps {
		buffer = pool.Buffer(int(n))
	}
	var err error
	if p.text, err = in.appendBytes(buffer, uint64(n)); err != nil {
		return WatchEvent{}, err
	}
	return p.decode(p.text)
}
