package framing

// numberByte processes a byte in or after a number. more is true if c belongs to the number. If
// it does not, and the number is incomplete, it returns an error.
func (s *scanner) numberByte(c byte) (more bool, err error) {
	switch s.state {
	case inMinus:
		switch {
		case c == '0':
			s.state = inZero
			return true, nil
		case isDigit(c):
			s.state = inDigits
			return true, nil
		}
	case inPoint, inExponent, inSign:
		switch {
		case isDigit(c) && s.state == inPoint:
			s.state = inFraction
			return true, nil
		case isDigit(c):
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

// numberTail is numberByte for a number that may end before c.
func (s *scanner) numberTail(c byte) (more bool) {
	switch {
	case isDigit(c):
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

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// trimSpace returns text without leading space.
func trimSpace(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	return text
}

// isPlain is true for the bytes that need no escape in a JSON string and do not end it.
var isPlain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// plainLength returns the number of plain bytes at the start of text.
func plainLength(text []byte) int {
	for i, c := range text {
		if !isPlain[c] {
			return i
		}
	}
	return len(text)
}
