package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// numberByte processes a byte that is part of a number or follows it. more is true if c
// belongs to the number. If c does not belong to it and the number is incomplete,
// numberByte returns an error.
func (s *Scanner) numberByte(c byte) (more bool, err error) {
	switch s.state {
	case inMinus:
		switch {
		case c == '0':
			s.state = inZero
			return true, nil
		case IsDigit(c):
			s.state = inDigits
			return true, nil
		}
	case inPoint, inExponent, inSign:
		switch {
		case IsDigit(c) && s.state == inPoint:
			s.state = inFraction
			return true, nil
		case IsDigit(c):
			s.state = inPower
			return true, nil
		case s.state == inExponent && (c == '+' || c == '-'):
			s.state = inSign
			return true, nil
		}
	default:
		return s.numberTail(c), nil
	}
	return false, s.unexpected(c)
}

// numberTail is like numberByte, but the bytes before c must already form a complete number.
func (s *Scanner) numberTail(c byte) (more bool) {
	switch {
	case IsDigit(c):
		return s.state != inZero
	case c == '.' && (s.state == inZero || s.state == inDigits):
		s.state = inPoint
		return true
	case (c == 'e' || c == 'E') && s.state != inPower:
		s.state = inExponent
		return true
	}
	return false
}

// IsSpace reports whether c is a space character in JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return IsDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// TrimSpace returns text without leading space.
func TrimSpace(text []byte) []byte {
	for len(text) > 0 && IsSpace(text[0]) {
		text = text[1:]
	}
	return text
}

// IsPlain is true for the bytes that need no escape in a JSON string and do not end it.
var IsPlain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// PlainLength returns the number of plain bytes at the start of text. It compares eight bytes at a
// time, because most of the text of large objects is in strings.
func PlainLength(text []byte) int {
	n := 0
	for ; n+8 <= len(text); n += 8 {
		if found := findSpecial(binary.LittleEndian.Uint64(text[n:])); found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && IsPlain[text[n]] {
		n++
	}
	return n
}

// findSpecial returns a word whose lowest set bit is in the lowest byte of w that is not plain, or
// 0 if all eight are plain.
func findSpecial(w uint64) uint64 {
	const ones, highBits = 0x0101010101010101, 0x8080808080808080
	// A byte x below n borrows in x-n, so that its high bit is set; ^x excludes bytes whose high
	// bit was set before. The borrow may spread to the bytes above, which does not matter.
	quotes, backslashes := w^'"'*ones, w^'\\'*ones
	return ((w-' '*ones)&^w | (quotes-ones)&^quotes | (backslashes-ones)&^backslashes) & highBits
}
