package framing

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/listwatch/listwatch/internal/rawjson"
)

var errNotUTF8 = errors.New("not valid UTF-8")

// A cborReader converts CBOR items to compact JSON text.
type cborReader struct {
	text []byte      // the JSON so far; the buffer is reused
	open []cborLevel // a stack of the open arrays and maps
	raw  []byte      // a reused buffer for strings that span chunks or reads
	// maxJSON is the maximum length of the JSON. Zero means no limit. A caller that limits the
	// length of the CBOR need not limit the JSON, which is at most nine times as long.
	maxJSON int
}

// maxDepth is the maximum nesting depth of an event, as in encoding/json.
const maxDepth = 10_000

// A cborLevel is an open array or map.
type cborLevel struct {
	head  cborHead
	items uint64 // items started so far; a member of a map is two items
}

func (l *cborLevel) isMap() bool { return l.head.major == cborMap }

// A cborHead is the head of an item (RFC 8949 3).
type cborHead struct {
	major, info byte
	n           uint64 // the argument
}

func (h cborHead) indefinite() bool { return h.info == infoIndefinite }

func (c *cborReader) mayHaveEvent(p []byte) bool { return len(p) > 0 }

func (c *cborReader) readEvent(in *input) (WatchEvent, error) {
	if err := c.readItem(in); err != nil {
		return WatchEvent{}, err
	}
	if c.text[0] != '{' {
		return WatchEvent{}, corrupt("CBOR: the event must be a map", nil)
	}
	return readCompact(c.text)
}

func (c *cborReader) readItem(in *input) error {
	c.text = reuse(c.text)
	c.open = c.open[:0]
	c.raw = reuse(c.raw)
	h, err := c.head(in)
	if err == nil {
		err = c.item(in, h)
	}
	for err == nil && len(c.open) > 0 {
		err = c.step(in)
		if err == nil && c.maxJSON > 0 && len(c.text) > c.maxJSON {
			err = tooLarge(c.maxJSON)
		}
	}
	return err
}

// step reads the next item of the innermost open array or map, or its end.
func (c *cborReader) step(in *input) error {
	l := &c.open[len(c.open)-1]
	if !l.head.indefinite() && l.items == l.head.n {
		c.close()
		return nil
	}
	if l.head.indefinite() {
		b, err := peek(in)
		if err != nil {
			return err
		}
		if b == cborBreak {
			in.take(1)
			if l.isMap() && l.items%2 == 1 {
				return corrupt("CBOR: a map ends after a name", nil)
			}
			c.close()
			return nil
		}
	}
	isName := l.isMap() && l.items%2 == 0
	switch {
	case l.isMap() && !isName:
		c.text = append(c.text, ':')
	case l.items > 0:
		c.text = append(c.text, ',')
	}
	l.items++
	h, err := c.head(in)
	if err != nil {
		return err
	}
	if isName && h.major != cborText && h.major != cborBytes {
		return corrupt("CBOR: the name of a member must be a string", nil)
	}
	return c.item(in, h)
}

func (c *cborReader) close() {
	end := byte(']')
	if c.open[len(c.open)-1].isMap() {
		end = '}'
	}
	c.text = append(c.text, end)
	c.open = c.open[:len(c.open)-1]
}

// head reads the head of an item. It skips the tag 55799, which only marks data as CBOR.
func (c *cborReader) head(in *input) (cborHead, error) {
	for {
		h, err := readHead(in)
		if err != nil || h.major != cborTag || h.n != tagSelfDescribed {
			return h, err
		}
	}
}

func readHead(in *input) (h cborHead, err error) {
	b, err := in.next()
	if err != nil {
		return h, err
	}
	h = cborHead{major: b >> 5, info: b & 31}
	switch {
	case h.info < infoByte:
		h.n = uint64(h.info)
		return h, nil
	case h.info <= infoUint64:
		for range 1 << (h.info - infoByte) {
			if b, err = in.next(); err != nil {
				return h, err
			}
			h.n = h.n<<8 | uint64(b)
		}
		return h, nil
	case h.indefinite() && h.major >= cborBytes && h.major <= cborMap:
		return h, nil
	}
	return h, corrupt(fmt.Sprintf("CBOR: no item starts with byte %#02x", b), nil)
}

// item reads the rest of the item with the head h, or opens an array or map.
func (c *cborReader) item(in *input, h cborHead) (err error) {
	switch h.major {
	case cborUint:
		c.text = strconv.AppendUint(c.text, h.n, 10)
	case cborNegative:
		c.text = appendNegative(c.text, h.n)
	case cborBytes, cborText:
		var raw []byte
		if raw, err = c.content(in, h); err != nil {
			return err
		}
		if !utf8.Valid(raw) {
			return corrupt("CBOR: string", errNotUTF8)
		}
		c.text = rawjson.AppendString(c.text, raw)
	case cborArray, cborMap:
		return c.push(in, h)
	case cborTag:
		return c.tagged(in, h.n)
	case cborSimple:
		return c.simple(h)
	}
	return nil
}

func (c *cborReader) push(in *input, h cborHead) error {
	if len(c.open) >= maxDepth {
		return corrupt(fmt.Sprintf("CBOR: exceeded max depth of %d levels", maxDepth), nil)
	}
	bracket := byte('[')
	if h.major == cborMap {
		bracket = '{'
	}
	if !h.indefinite() {
		// Each item has at least one byte, so a count above the limit is rejected before
		// its items are read.
		if h.n > uint64(in.limit) {
			return tooLarge(in.limit)
		}
		if h.major == cborMap {
			h.n *= 2
		}
	}
	c.text = append(c.text, bracket)
	c.open = append(c.open, cborLevel{head: h})
	return nil
}
