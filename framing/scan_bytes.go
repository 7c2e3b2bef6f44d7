package framing

// numberByte reports whether c belongs to the number at hand. It is an error where the number can't end there.
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

// numberTail is numberByte where the number may end.
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

// trimSpace returns text without the space it begins with.
func trimSpace(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	return text
}

// plain holds the bytes that mean nothing but themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

func plainRun(text []byte) int {
	for i, c := range text {
		if !plain[c] {
			return i
		}
	}
	return len(text)
}
