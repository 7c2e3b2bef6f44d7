package framing

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/listwatch/listwatch"
)

const (
	// maxDigits limits the length of numbers that are converted between decimal and binary. The
	// time grows with the square of the length, and is below a millisecond for maxDigits.
	maxDigits = 16_384
	// maxBignum is the number of bytes of a bignum with maxDigits decimal digits.
	maxBignum = maxDigits * 107 / 256 // 107/256 > log2(10)/8
)

// appendNumber appends a JSON number as the CBOR number with exactly the same value, by the
// rules of [CBORSeq].
func appendNumber(dst, text []byte) ([]byte, error) {
	if bytes.ContainsAny(text, ".eE") || string(text) == "-0" {
		return appendDecimal(dst, text)
	}
	digits := bytes.TrimPrefix(text, []byte("-"))
	return appendInteger(dst, len(digits) < len(text), digits)
}

// appendRoundedNumber appends a JSON number as the value that Kubernetes' clients get when they
// decode it from JSON: a signed integer of 64 bits, or else the nearest float64. A number beyond
// float64 becomes an infinity. These clients refuse it, as they refuse such a number in JSON.
func appendRoundedNumber(dst, text []byte) ([]byte, error) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		if n < 0 {
			return appendHead(dst, cborNegative, uint64(-(n + 1))), nil
		}
		return appendHead(dst, cborUint, uint64(n)), nil
	}
	f, _ := strconv.ParseFloat(string(text), 64) // fails only if f is an infinity
	return binary.BigEndian.AppendUint64(append(dst, cborSimple<<5|infoUint64), math.Float64bits(f)), nil
}

// appendInteger appends an integer. If negative is true, the integer must not be zero.
func appendInteger(dst []byte, negative bool, digits []byte) ([]byte, error) {
	if len(digits) <= 20 {
		if n, err := strconv.ParseUint(string(digits), 10, 64); err == nil {
			if negative {
				// RFC 8949 3.1: the value of an item of type 1 is -1 minus its argument.
				return appendHead(dst, cborNegative, n-1), nil
			}
			return appendHead(dst, cborUint, n), nil
		}
	}
	if len(digits) > maxDigits {
		return dst, encodeError(listwatch.Unsupported,
			fmt.Sprintf("a number of %d digits, at most %d are supported in CBOR", len(digits), maxDigits), nil)
	}
	n, _ := new(big.Int).SetString(string(digits), 10)
	major, tag := byte(cborUint), uint64(tagBignum)
	if negative {
		n.Sub(n, big.NewInt(1))
		major, tag = cborNegative, tagNegativeBignum
	}
	if n.IsUint64() { // only for -2^64: all other numbers of this size were encoded above
		return appendHead(dst, major, n.Uint64()), nil
	}
	raw := n.Bytes()
	dst = appendHead(dst, cborTag, tag)
	return append(appendHead(dst, cborBytes, uint64(len(raw))), raw...), nil
}

// A decimal is the value ±digits · 10^exponent.
type decimal struct {
	negative bool
	digits   []byte // without leading zeros; empty for zero
	exponent int64
}

// appendDecimal appends a number that has a point or an exponent, or is -0.
func appendDecimal(dst, text []byte) ([]byte, error) {
	var fixed [32]byte
	d, err := parseDecimal(fixed[:0], text)
	if err != nil {
		return dst, err
	}
	if f, ok := d.float(text); ok {
		return binary.BigEndian.AppendUint64(append(dst, cborSimple<<5|infoUint64), math.Float64bits(f)), nil
	}
	dst = appendHead(dst, cborTag, tagDecimal)
	dst = appendHead(dst, cborArray, 2)
	if d.exponent < 0 {
		dst = appendHead(dst, cborNegative, uint64(-1-d.exponent))
	} else {
		dst = appendHead(dst, cborUint, uint64(d.exponent))
	}
	return appendInteger(dst, d.negative, d.digits)
}

// parseDecimal parses a JSON number. digits is a buffer for the digits of d.
func parseDecimal(digits, text []byte) (d decimal, err error) {
	mantissa, exponent := text, []byte("0")
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	if mantissa[0] == '-' {
		d.negative, mantissa = true, mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	d.digits = bytes.TrimLeft(append(append(digits, whole...), fraction...), "0")
	if len(d.digits) == 0 {
		return d, nil
	}
	d.exponent, err = strconv.ParseInt(string(exponent), 10, 64)
	if err != nil || d.exponent < math.MinInt64+int64(len(fraction)) {
		return d, encodeError(listwatch.Unsupported, "an exponent beyond 63 bits: "+excerpt(text), nil)
	}
	d.exponent -= int64(len(fraction))
	return d, nil
}

// float returns the float64 whose shortest decimal form has the value of d. text is the
// JSON text of d. ok is false if there is no such float64.
func (d decimal) float(text []byte) (f float64, ok bool) {
	if len(d.digits) == 0 {
		if d.negative {
			return math.Copysign(0, -1), true
		}
		return 0, true
	}
	significant := bytes.TrimRight(d.digits, "0")
	// The shortest decimal form of a float64 has at most 17 digits. The limit of the exponent
	// prevents overflows below.
	if len(significant) > 17 || d.exponent > 1<<40 || d.exponent < -1<<40 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f == 0 {
		return 0, false
	}
	var digits, form [32]byte
	shortest, err := parseDecimal(digits[:0], strconv.AppendFloat(form[:0], f, 'e', -1, 64))
	if err != nil {
		return 0, false
	}
	// Without their trailing zeros, two decimal numbers are equal if and only if their digits
	// and their exponents are equal.
	trimmed := bytes.TrimRight(shortest.digits, "0")
	return f, bytes.Equal(trimmed, significant) &&
		shortest.exponent+int64(len(shortest.digits)-len(trimmed)) == d.exponent+int64(len(d.digits)-len(significant))
}

// appendFloat appends the shortest form of f, which must be finite. The form always has a point
// or an exponent, so that it is not an integer.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) { // as in encoding/json and JavaScript
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if format == 'f' && bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendNegative appends -1-n.
func appendNegative(dst []byte, n uint64) []byte {
	if n == math.MaxUint64 {
		return append(dst, "-18446744073709551616"...)
	}
	return strconv.AppendUint(append(dst, '-'), n+1, 10)
}

// appendBignum appends the decimal text of a bignum.
func appendBignum(dst, raw []byte, negative bool) []byte {
	n := new(big.Int).SetBytes(raw)
	if negative {
		n.Not(n) // -1-n
	}
	return n.Append(dst, 10)
}

// appendScaled appends mantissa · 10^exponent as JSON, for an integer mantissa. It uses a point
// instead of an exponent if that needs at most maxZeros additional zeros.
func appendScaled(dst, mantissa, exponent []byte) []byte {
	const maxZeros = 6
	if mantissa[0] == '-' {
		dst, mantissa = append(dst, '-'), mantissa[1:]
	}
	shift, err := strconv.ParseInt(string(exponent), 10, 32)
	point := int64(len(mantissa)) + shift
	switch {
	case err != nil || shift >= 0 || point < -maxZeros:
		dst = append(append(dst, mantissa...), 'e')
		return append(dst, exponent...)
	case point > 0:
		dst = append(append(dst, mantissa[:point]...), '.')
		return append(dst, mantissa[point:]...)
	}
	dst = append(dst, "0.000000"[:2-point]...)
	return append(dst, mantissa...)
}
