package framing

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

var errNotUTF8 = errors.New("not valid UTF-8")

// A cborReader turns CBOR items into compact JSON text. It keeps the arrays and maps that are open on a stack of its own.
type cborReader struct {
	body bodyReader // its text is the JSON so far
	open []cborLevel
	raw  []byte // scratch: the content of a string that came in pieces
	most int    // how long the JSON may become; zero: the caller has bounded the CBOR, and the JSON has at most eight times as much
}

// A cborLevel is an array or a map that is open.
type cborLevel struct {
	head  cborHead
	items uint64 // begun so far; a member of a map is two
}

func (l *cborLevel) isMap() bool { return l.head.major == cborMap }

// A cborHead is the head of an item (RFC 8949 3).
type cborHead struct {
	major, info byte
	n           uint64 // the argument
}

func (h cborHead) indefinite() bool { return h.info == infoIndefinite }

func (c *cborReader) readEvent(in *input) (WatchEvent, error) {
	c.body.begin()
	c.open = c.open[:0]
	if cap(c.raw) > keptScratch {
		c.raw = nil
	}
	h, err := c.head(in)
	if err == nil {
		err = c.item(in, h)
	}
	for err == nil && len(c.open) > 0 {
		err = c.step(in)
		if err == nil && c.most > 0 && len(c.body.text) > c.most {
			err = tooLarge(c.most)
		}
	}
	if err != nil {
		return WatchEvent{}, err
	}
	if c.body.text[0] != '{' {
		return WatchEvent{}, corrupt("CBOR: the item is no map", nil)
	}
	return c.body.event(c.body.text)
}

// step reads the next item of the innermost array or map, or its end.
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
				return corrupt("CBOR: a map ends behind a name", nil)
			}
			c.close()
			return nil
		}
	}
	isName := l.isMap() && l.items%2 == 0
	switch {
	case l.isMap() && !isName:
		c.body.text = append(c.body.text, ':')
	case l.items > 0:
		c.body.text = append(c.body.text, ',')
	}
	l.items++
	h, err := c.head(in)
	if err != nil {
		return err
	}
	if isName && h.major != cborText && h.major != cborBytes {
		return corrupt("CBOR: the name of a member is no string", nil)
	}
	return c.item(in, h)
}

func (c *cborReader) close() {
	end := byte(']')
	if c.open[len(c.open)-1].isMap() {
		end = '}'
	}
	c.body.text = append(c.body.text, end)
	c.open = c.open[:len(c.open)-1]
}

// head reads the head of an item and passes over the tag 55799, which says "this is CBOR" and nothing else.
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
	return h, corrupt(fmt.Sprintf("CBOR: no item begins with byte %#02x", b), nil)
}

// item reads what follows the head h: a whole item, or the opening of an array or a map.
func (c *cborReader) item(in *input, h cborHead) (err error) {
	switch h.major {
	case cborUint:
		c.body.text = strconv.AppendUint(c.body.text, h.n, 10)
	case cborNegative:
		c.body.text = appendNegative(c.body.text, h.n)
	case cborBytes, cborText:
		var raw []byte
		if raw, err = c.content(in, h); err != nil {
			return err
		}
		if !utf8.Valid(raw) {
			return corrupt("CBOR: a string", errNotUTF8)
		}
		c.body.text = appendQuoted(c.body.text, raw)
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
		return corrupt("CBOR", errDepth)
	}
	begin := byte('[')
	if h.major == cborMap {
		begin = '{'
	}
	if !h.indefinite() {
		// An item has at least one byte: a count that can't be true is refused before anything is read.
		if h.n > uint64(in.limit) {
			return tooLarge(in.limit)
		}
		if h.major == cborMap {
			h.n *= 2
		}
	}
	c.body.text = append(c.body.text, begin)
	c.open = append(c.open, cborLevel{head: h})
	return nil
}

// content reads what a string of bytes or text holds. The result is good until in is read again.
func (c *cborReader) content(in *input, h cborHead) ([]byte, error) {
	if !h.indefinite() {
		if h.n == 0 { // nothing more may come for a while
			return nil, nil
		}
		if w, err := in.window(); err == nil && h.n <= uint64(len(w)) {
			in.take(int(h.n))
			return w[:h.n], nil
		}
	}
	c.raw = c.raw[:0]
	if !h.indefinite() {
		var err error
		c.raw, err = in.appendBytes(c.raw, h.n)
		return c.raw, err
	}
	for {
		b, err := peek(in)
		if err != nil {
			return nil, err
		}
		if b == cborBreak {
			in.take(1)
			return c.raw, nil
		}
		start := len(c.raw)
		if err := c.chunk(in, h.major); err != nil {
			return nil, err
		}
		if h.major == cborText && !utf8.Valid(c.raw[start:]) {
			return nil, corrupt("CBOR: a chunk of a string", errNotUTF8) // RFC 8949 3.2.3: no character spans chunks
		}
	}
}

// chunk appends one chunk of a string of indefinite length to c.raw.
func (c *cborReader) chunk(in *input, major byte) error {
	h, err := readHead(in)
	if err != nil {
		return err
	}
	if h.major != major || h.indefinite() {
		return corrupt("CBOR: a chunk of a string is of another type", nil)
	}
	c.raw, err = in.appendBytes(c.raw, h.n)
	return err
}

func (c *cborReader) simple(h cborHead) error {
	var f float64
	switch h.info {
	case cborFalse:
		c.body.text = append(c.body.text, "false"...)
		return nil
	case cborTrue:
		c.body.text = append(c.body.text, "true"...)
		return nil
	case cborNull:
		c.body.text = append(c.body.text, "null"...)
		return nil
	case infoUint16:
		f = halfFloat(uint16(h.n))
	case infoUint32:
		f = float64(math.Float32frombits(uint32(h.n)))
	case infoUint64:
		f = math.Float64frombits(h.n)
	default:
		return corrupt(fmt.Sprintf("CBOR: simple value %d has no JSON", h.n), nil)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return corrupt("CBOR: NaN and infinity have no JSON", nil)
	}
	c.body.text = appendFloat(c.body.text, f)
	return nil
}

// halfFloat returns the value of a float of 16 bits (RFC 8949, appendix D).
func halfFloat(bits uint16) float64 {
	exponent, mantissa := int(bits>>10&31), float64(bits&0x3FF)
	var f float64
	switch exponent {
	case 0:
		f = math.Ldexp(mantissa, -24)
	case 31:
		f = math.Inf(1)
		if mantissa != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(mantissa+1024, exponent-25)
	}
	if bits>>15 != 0 {
		f = -f
	}
	return f
}

// tagged reads the content of a tag.
func (c *cborReader) tagged(in *input, tag uint64) (err error) {
	switch tag {
	case tagBignum, tagNegativeBignum:
		c.body.text, err = c.bignum(in, c.body.text, tag)
		return err
	case tagDecimal:
		return c.decimal(in)
	case tagBase64:
		h, err := readHead(in)
		if err != nil {
			return err
		}
		if h.major != cborBytes {
			return corrupt("CBOR: tag 22 holds no byte string", nil)
		}
		raw, err := c.content(in, h)
		if err != nil {
			return err
		}
		c.body.text = append(c.body.text, '"')
		c.body.text = base64.StdEncoding.AppendEncode(c.body.text, raw)
		c.body.text = append(c.body.text, '"')
		return nil
	}
	return corrupt(fmt.Sprintf("CBOR: tag %d is not known here", tag), nil)
}

// bignum reads the byte string of a bignum (RFC 8949 3.4.3) and appends its value to dst.
func (c *cborReader) bignum(in *input, dst []byte, tag uint64) ([]byte, error) {
	h, err := readHead(in)
	if err != nil {
		return dst, err
	}
	if h.major != cborBytes {
		return dst, corrupt("CBOR: a bignum holds no byte string", nil)
	}
	raw, err := c.content(in, h)
	if err != nil {
		return dst, err
	}
	if len(raw) > maxBignum {
		return dst, corrupt(fmt.Sprintf("CBOR: a bignum of %d bytes, at most %d are read", len(raw), maxBignum), nil)
	}
	return appendBignum(dst, raw, tag == tagNegativeBignum), nil
}

// decimal reads the array of a decimal fraction (RFC 8949 3.4.4): exponent and mantissa.
func (c *cborReader) decimal(in *input) error {
	h, err := readHead(in)
	if err != nil {
		return err
	}
	if h.major != cborArray || !h.indefinite() && h.n != 2 {
		return corrupt("CBOR: a decimal fraction is no array of two", nil)
	}
	exponent, err := c.integer(in, false)
	if err != nil {
		return err
	}
	mantissa, err := c.integer(in, true)
	if err != nil {
		return err
	}
	if h.indefinite() {
		if b, err := in.next(); err != nil || b != cborBreak {
			return errOr(err, corrupt("CBOR: a decimal fraction is no array of two", nil))
		}
	}
	c.body.text = appendScaled(c.body.text, mantissa, exponent)
	return nil
}

// integer reads an integer, which may be a bignum where big allows it, and returns its decimal text.
func (c *cborReader) integer(in *input, big bool) ([]byte, error) {
	h, err := readHead(in)
	switch {
	case err != nil:
		return nil, err
	case h.major == cborUint:
		return strconv.AppendUint(nil, h.n, 10), nil
	case h.major == cborNegative:
		return appendNegative(nil, h.n), nil
	case big && h.major == cborTag && (h.n == tagBignum || h.n == tagNegativeBignum):
		return c.bignum(in, nil, h.n)
	}
	return nil, corrupt("CBOR: a decimal fraction holds no integers", nil)
}

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
