package framing

import (
	"errors"
	"fmt"
)

// maxDepth is how deep the brackets of an event may nest: one level for the event around an object of 10,000, which is what
// encoding/json reads and so the most that a store can hold.
const maxDepth = 10_001

// A scanner checks the text of one JSON object (RFC 8259) as it comes, in pieces of any size, and drops insignificant space. It
// looks at each byte once. It leaves UTF-8 to its caller. The zero scanner is ready for one object.
type scanner struct {
	state scanState
	name  bool                    // the string at hand is the name of a member
	hex   int                     // digits that a \u still needs
	rest  string                  // what remains of a literal
	check bool                    // only check: copy nothing
	depth int                     // brackets that are open
	kinds [maxDepth/64 + 1]uint64 // a bit for each of them: set for objects; an array, so that a scanner takes no memory elsewhere
}

type scanState uint8

const (
	atObject scanState = iota // before everything
	atValue
	atFirstValue // or the end of the array
	atName
	atFirstName // or the end of the object
	atColon
	atComma // or the end of what is open
	inString
	inEscape
	inHex
	inLiteral
	inMinus  // a digit must follow
	inZero   // no digit may follow
	inDigits // of the whole part
	inPoint  // a digit must follow
	inFraction
	inExponent // a sign or a digit must follow
	inSign     // a digit must follow
	inPower    // digits of the exponent
	atEnd      // the object is complete
)

// wants says what a state waits for, for messages.
var wants = [...]string{
	atObject: "an object", atValue: "a value", atFirstValue: "a value or ]", atName: "a name", atFirstName: "a name or }",
	atColon: "a colon", atComma: "a comma or a closing bracket", inString: "no control character in a string",
	inEscape: "an escape", inHex: "a hexadecimal digit", inLiteral: "true, false or null", inMinus: "a digit",
	inPoint: "a digit", inExponent: "a digit", inSign: "a digit",
}

func (s *scanner) reset() { s.state, s.depth = atObject, 0 }

func (s *scanner) done() bool { return s.state == atEnd }

// scan reads src up to the end of the object, appends what is significant of it to dst and returns how much it has read. dst may
// be src[:0].
func (s *scanner) scan(dst, src []byte) (out []byte, n int, err error) {
	start, i := 0, 0 // src[start:i] is significant and not yet copied
	for i < len(src) && s.state != atEnd {
		if s.state == inString {
			if i += plainRun(src[i:]); i == len(src) {
				break
			}
		}
		space, err := s.step(src[i])
		if err != nil {
			return dst, i, err
		}
		if space && !s.check {
			dst = append(dst, src[start:i]...)
			start = i + 1
		}
		i++
	}
	if !s.check {
		dst = append(dst, src[start:i]...)
	}
	return dst, i, nil
}

// step moves on by one byte and reports whether that is insignificant space.
func (s *scanner) step(c byte) (space bool, err error) {
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
		s.state = atComma // c is the byte behind the number
	}
	if isSpace(c) {
		return true, nil
	}
	return false, s.structureByte(c)
}

func (s *scanner) structureByte(c byte) error {
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

// commaByte reads what may follow a value.
func (s *scanner) commaByte(c byte) error {
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

func (s *scanner) valueByte(c byte) error {
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
		if !isDigit(c) {
			return s.unexpected(c)
		}
		s.state = inDigits
	}
	return nil
}

func (s *scanner) push(c byte) error {
	if s.depth >= maxDepth {
		return errDepth
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

func (s *scanner) pop() {
	s.depth--
	s.state = atComma
	if s.depth == 0 {
		s.state = atEnd
	}
}

func (s *scanner) stringByte(c byte) error {
	switch {
	case c == '\\':
		s.state = inEscape
	case c == '"' && s.name:
		s.state = atColon
	case c == '"':
		s.state = atComma
	default: // plainRun has left only control characters
		return s.unexpected(c)
	}
	return nil
}

func (s *scanner) escapeByte(c byte) error {
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

func (s *scanner) unexpected(c byte) error {
	return fmt.Errorf("got %q, want %s", c, wants[s.state])
}

var errUnfinished = errors.New("the JSON ends too early")

// compactObject checks a text that must be one JSON object, and takes insignificant space out of it in place.
func (s *scanner) compactObject(text []byte) ([]byte, error) {
	s.reset()
	return s.object(text[:0], text)
}

// object reads a text that must be one JSON object.
func (s *scanner) object(dst, text []byte) ([]byte, error) {
	out, n, err := s.scan(dst, text)
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w, at byte %d", err, n+1)
	}
	if !s.done() {
		return nil, errUnfinished
	}
	if rest := trimSpace(text[n:]); len(rest) > 0 {
		return nil, fmt.Errorf("JSON goes on after its object: %s", excerpt(rest))
	}
	return out, nil
}
