// Package jsonscan validates JSON objects incrementally and removes insignificant space. It
// is for decoders of streams, which find the end of an object only by scanning it.
package jsonscan

import (
	"errors"
	"fmt"
	"strconv"
)

// MaxDepth is the maximum nesting depth: 10,000 levels, as in encoding/json, and one more
// for the event that contains the object.
const MaxDepth = 10_001

// A Scanner validates the text of one JSON object (RFC 8259) incrementally, in parts of any size,
// and removes insignificant space. It reads each byte once. It does not validate UTF-8. The zero
// Scanner is ready for one object.
type Scanner struct {
	state  scanState
	name   bool   // the current string is the name of a member
	hex    int    // the number of hexadecimal digits still expected after \u
	rest   string // the expected rest of a literal
	noCopy bool   // validate without copying
	alone  bool   // no event will contain the object: its depth is at most MaxDepth-1
	depth  int    // the number of open brackets
	// kinds has a bit for each open bracket, which is set for objects. It is an array to avoid an
	// allocation.
	kinds [MaxDepth/64 + 1]uint64
}

type scanState uint8

const (
	atObject scanState = iota // at the start of the text
	atValue
	atFirstValue // after '[': a value or ']' must follow
	atName
	atFirstName // after '{': a name or '}' must follow
	atColon
	atComma // after a value: a comma or a closing bracket must follow
	inString
	inEscape
	inHex
	inLiteral
	inMinus  // after a minus sign: a digit must follow
	inZero   // after a leading 0: no digit may follow
	inDigits // in the integer part of a number
	inPoint  // after the decimal point: a digit must follow
	inFraction
	inExponent // after e or E: a sign or a digit must follow
	inSign     // after the sign of the exponent: a digit must follow
	inPower    // in the digits of an exponent
	atEnd      // the object is complete
)

// expected describes the input that a state expects, for error messages.
var expected = [...]string{
	atObject: "an object", atValue: "a value", atFirstValue: "a value or ]", atName: "a name", atFirstName: "a name or }",
	atColon: "a colon", atComma: "a comma or a closing bracket", inString: "a string without control characters",
	inEscape: "an escape", inHex: "a hexadecimal digit", inLiteral: "true, false or null", inMinus: "a digit",
	inPoint: "a digit", inExponent: "a digit", inSign: "a digit",
}

// Reset prepares s for the next object.
func (s *Scanner) Reset() { s.state, s.depth = atObject, 0 }

// Done reports whether the object is complete.
func (s *Scanner) Done() bool { return s.state == atEnd }

// Scan reads src up to the end of the object, appends it to dst without insignificant space, and
// returns the number of bytes read. dst may be src[:0].
func (s *Scanner) Scan(dst, src []byte) (out []byte, n int, err error) {
	start, i := 0, 0 // src[start:i] is not yet copied
	for i < len(src) && s.state != atEnd {
		if s.state == inString {
			if i += PlainLength(src[i:]); i == len(src) {
				break
			}
		}
		space, err := s.step(src[i])
		if err != nil {
			return dst, i, err
		}
		if space && !s.noCopy {
			dst = append(dst, src[start:i]...)
			start = i + 1
		}
		i++
	}
	if !s.noCopy {
		dst = append(dst, src[start:i]...)
	}
	return dst, i, nil
}

// step processes one byte and reports whether it is insignificant space.
func (s *Scanner) step(c byte) (space bool, err error) {
	switch s.state {
	case inString:
		return false, s.stringByte(c)
	case inEscape:
		return false, s.escapeByte(c)
	case inHex:
		if !isHex(c) {
			return false, s.unexpected(c)
		}
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
		return false, nil
	case inLiteral:
		if c != s.rest[0] {
			return false, s.unexpected(c)
		}
		if s.rest = s.rest[1:]; s.rest == "" {
			s.state = atComma
		}
		return false, nil
	}
	if s.state >= inMinus && s.state <= inPower {
		more, err := s.numberByte(c)
		if more || err != nil {
			return false, err
		}
		s.state = atComma // c is the byte after the number
	}
	if IsSpace(c) {
		return true, nil
	}
	return false, s.structureByte(c)
}

func (s *Scanner) structureByte(c byte) error {
	switch s.state {
	case atObject:
		if c == '{' {
			return s.push(c)
		}
	case atValue:
		return s.valueByte(c)
	case atFirstValue:
		if c == ']' {
			s.pop()
			return nil
		}
		return s.valueByte(c)
	case atName, atFirstName:
		switch {
		case c == '"':
			s.name, s.state = true, inString
			return nil
		case c == '}' && s.state == atFirstName:
			s.pop()
			return nil
		}
	case atColon:
		if c == ':' {
			s.state = atValue
			return nil
		}
	case atComma:
		return s.commaByte(c)
	}
	return s.unexpected(c)
}

// commaByte processes a byte after a value.
func (s *Scanner) commaByte(c byte) error {
	top := s.depth - 1
	inObject := s.kinds[top/64]>>(top%64)&1 != 0
	switch {
	case c == ',' && inObject:
		s.state = atName
	case c == ',':
		s.state = atValue
	case c == '}' && inObject, c == ']' && !inObject:
		s.pop()
	default:
		return s.unexpected(c)
	}
	return nil
}

func (s *Scanner) valueByte(c byte) error {
	switch c {
	case '{', '[':
		return s.push(c)
	case '"':
		s.name, s.state = false, inString
	case '-':
		s.state = inMinus
	case '0':
		s.state = inZero
	case 't':
		s.state, s.rest = inLiteral, "rue"
	case 'f':
		s.state, s.rest = inLiteral, "alse"
	case 'n':
		s.state, s.rest = inLiteral, "ull"
	default:
		if !IsDigit(c) {
			return s.unexpected(c)
		}
		s.state = inDigits
	}
	return nil
}

func (s *Scanner) push(c byte) error {
	if s.depth >= MaxDepth || s.alone && s.depth >= MaxDepth-1 {
		return ErrDepth
	}
	word, bit := &s.kinds[s.depth/64], uint64(1)<<(s.depth%64)
	s.depth++
	if c == '{' {
		*word |= bit
		s.state = atFirstName
	} else {
		*word &^= bit
		s.state = atFirstValue
	}
	return nil
}

func (s *Scanner) pop() {
	s.depth--
	s.state = atComma
	if s.depth == 0 {
		s.state = atEnd
	}
}

func (s *Scanner) stringByte(c byte) error {
	switch {
	case c == '\\':
		s.state = inEscape
	case c == '"' && s.name:
		s.state = atColon
	case c == '"':
		s.state = atComma
	default: // a control character: Scan skips plain characters
		return s.unexpected(c)
	}
	return nil
}

func (s *Scanner) escapeByte(c byte) error {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.state = inString
	case 'u':
		s.state, s.hex = inHex, 4
	default:
		return s.unexpected(c)
	}
	return nil
}

func (s *Scanner) unexpected(c byte) error {
	return fmt.Errorf("found %q, expected %s", c, expected[s.state])
}

// ErrDepth is returned for an object that is nested too deeply.
var ErrDepth = errors.New("nested more than " + strconv.Itoa(MaxDepth-1) + " levels deep")

var errIncomplete = errors.New("incomplete JSON")

// Compact validates text, which must be one JSON object, and removes insignificant space in
// place.
func (s *Scanner) Compact(text []byte) ([]byte, error) {
	s.Reset()
	return s.object(text[:0], text)
}

// AppendObject validates text, which must be one JSON object, and appends it to dst without
// insignificant space. It accepts what encoding/json accepts.
func AppendObject(dst, text []byte) ([]byte, error) {
	s := Scanner{alone: true}
	return s.object(dst, text)
}

// Validate returns an error if text is not one JSON object.
func Validate(text []byte) error {
	s := Scanner{noCopy: true}
	_, err := s.object(nil, text)
	return err
}

// object validates text, which must be one JSON object, and appends it to dst without
// insignificant space.
func (s *Scanner) object(dst, text []byte) ([]byte, error) {
	out, n, err := s.Scan(dst, text)
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w, at byte %d", err, n+1)
	}
	if !s.Done() {
		return nil, errIncomplete
	}
	if rest := TrimSpace(text[n:]); len(rest) > 0 {
		return nil, fmt.Errorf("unexpected data after the object: %.64q", rest)
	}
	return out, nil
}
