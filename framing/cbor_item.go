package framing

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// content reads the content of a byte or text string. The result is valid until the next read
// from in.
func (c *cborReader) content(in *input, h cborHead) ([]byte, error) {
	if !h.indefinite() {
		if h.n == 0 { // an empty string needs no further input
			return nil, nil
		}
		if w, err := in.available(); err == nil && h.n <= uint64(len(w)) {
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
			// RFC 8949 3.2.3: a character must not span two chunks.
			return nil, corrupt("CBOR: chunk of a string", errNotUTF8)
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
		return corrupt("CBOR: a chunk of a string has another type", nil)
	}
	c.raw, err = in.appendBytes(c.raw, h.n)
	return err
}

func (c *cborReader) simple(h cborHead) error {
	var f float64
	switch h.info {
	case cborFalse:
		c.text = append(c.text, "false"...)
		return nil
	case cborTrue:
		c.text = append(c.text, "true"...)
		return nil
	case cborNull:
		c.text = append(c.text, "null"...)
		return nil
	case infoUint16:
		f = halfFloat(uint16(h.n))
	case infoUint32:
		f = float64(math.Float32frombits(uint32(h.n)))
	case infoUint64:
		f = math.Float64frombits(h.n)
	default:
		return corrupt(fmt.Sprintf("CBOR: simple value %d has no JSON form", h.n), nil)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return corrupt("CBOR: NaN and infinity have no JSON form", nil)
	}
	c.text = appendFloat(c.text, f)
	return nil
}

// halfFloat converts a float of 16 bits (RFC 8949, appendix D).
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
		c.text, err = c.bignum(in, c.text, tag)
		return err
	case tagDecimal:
		return c.decimal(in)
	case tagBase64:
		raw, err := c.byteString(in, "tag 22")
		if err != nil {
			return err
		}
		c.text = append(c.text, '"')
		c.text = base64.StdEncoding.AppendEncode(c.text, raw)
		c.text = append(c.text, '"')
		return nil
	}
	return corrupt(fmt.Sprintf("CBOR: unknown tag %d", tag), nil)
}

// byteString reads the byte string that follows a tag. tag names the tag in an error.
func (c *cborReader) byteString(in *input, tag string) ([]byte, error) {
	h, err := readHead(in)
	if err == nil && h.major != cborBytes {
		err = corrupt("CBOR: "+tag+" must have a byte string", nil)
	}
	if err != nil {
		return nil, err
	}
	return c.content(in, h)
}

// bignum reads the byte string of a bignum (RFC 8949 3.4.3) and appends its decimal text to dst.
func (c *cborReader) bignum(in *input, dst []byte, tag uint64) ([]byte, error) {
	raw, err := c.byteString(in, "a bignum")
	if err != nil {
		return dst, err
	}
	if len(raw) > maxBignum {
		return dst, corrupt(fmt.Sprintf("CBOR: a bignum of %d bytes, at most %d are allowed", len(raw), maxBignum), nil)
	}
	return appendBignum(dst, raw, tag == tagNegativeBignum), nil
}

// decimal reads the array of a decimal fraction (RFC 8949 3.4.4), which consists of the
// exponent and the mantissa.
func (c *cborReader) decimal(in *input) error {
	const notTwo = "CBOR: a decimal fraction must be an array of two"
	h, err := readHead(in)
	if err != nil {
		return err
	}
	if h.major != cborArray || !h.indefinite() && h.n != 2 {
		return corrupt(notTwo, nil)
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
		b, err := in.next()
		if err != nil {
			return err
		}
		if b != cborBreak {
			return corrupt(notTwo, nil)
		}
	}
	c.text = appendScaled(c.text, mantissa, exponent)
	return nil
}

// integer reads an integer and returns its decimal text. A bignum is allowed if allowBig is true.
func (c *cborReader) integer(in *input, allowBig bool) ([]byte, error) {
	h, err := readHead(in)
	switch {
	case err != nil:
		return nil, err
	case h.major == cborUint:
		return strconv.AppendUint(nil, h.n, 10), nil
	case h.major == cborNegative:
		return appendNegative(nil, h.n), nil
	case allowBig && h.major == cborTag && (h.n == tagBignum || h.n == tagNegativeBignum):
		return c.bignum(in, nil, h.n)
	}
	return nil, corrupt("CBOR: a decimal fraction must have integers", nil)
}
