package framing

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
)

// appendCBOR appends the JSON object src as CBOR. Sizes come before contents in CBOR, so it walks src three times: to check it, to
// count, and to write. After the check no walk needs to doubt a byte.
func appendCBOR(dst, src []byte) ([]byte, error) {
	if err := checkObject(src); err != nil {
		return dst, unfit(listwatch.Invalid, "the object", err)
	}
	var fixed [64]int // for most objects, no memory is taken
	counts := countItems(fixed[:0], src)
	var err error
	for i := 0; i < len(src); {
		end := i + 1
		switch c := src[i]; c {
		case '{', '[':
			major := byte(cborMap)
			if c == '[' {
				major = cborArray
			}
			dst = appendHead(dst, major, uint64(counts[0]))
			counts = counts[1:]
		case '"':
			end = stringEnd(src, i)
			dst = appendString(dst, src[i+1:end-1])
		case 't':
			end, dst = i+len("true"), append(dst, cborSimple<<5|cborTrue)
		case 'f':
			end, dst = i+len("false"), append(dst, cborSimple<<5|cborFalse)
		case 'n':
			end, dst = i+len("null"), append(dst, cborSimple<<5|cborNull)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end = numberEnd(src, i)
			if dst, err = appendNumber(dst, src[i:end]); err != nil {
				return dst, err
			}
		}
		i = end
	}
	return dst, nil
}

func checkObject(src []byte) error {
	if !utf8.Valid(src) {
		return errNotUTF8
	}
	s := scanner{check: true}
	_, err := s.object(nil, src)
	return err
}

// countItems appends, for each array and object of src in the order of their opening brackets, how many elements or members it has.
func countItems(counts []int, src []byte) []int {
	var fixed [32]int
	open := fixed[:0] // the indices in counts of those that are open
	for i := 0; i < len(src); i++ {
		c := src[i]
		if isSpace(c) || c == ':' {
			continue
		}
		if c == '}' || c == ']' {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 {
			if k := open[n-1]; c == ',' {
				counts[k]++
			} else if counts[k] == 0 {
				counts[k] = 1
			}
		}
		switch c {
		case '{', '[':
			open = append(open, len(counts))
			counts = append(counts, 0)
		case '"':
			i = stringEnd(src, i) - 1
		}
	}
	return counts
}

// stringEnd returns where the string that begins at src[i] ends.
func stringEnd(src []byte, i int) int {
	for i++; ; i++ {
		i += plainRun(src[i:])
		if src[i] == '"' {
			return i + 1
		}
		i++ // past what a backslash escapes
	}
}

func numberEnd(src []byte, i int) int {
	for i < len(src) {
		switch c := src[i]; {
		case isDigit(c), c == '-', c == '+', c == '.', c == 'e', c == 'E':
			i++
		default:
			return i
		}
	}
	return i
}

// appendHead appends the head of an item: its major type and its argument, in as few bytes as it takes.
func appendHead(dst []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < infoByte:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|infoByte, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|infoUint16), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|infoUint32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|infoUint64), n)
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(appendHead(dst, cborText, uint64(len(text))), text...)
}

// appendString appends what stands between the quotes of a JSON string.
func appendString(dst, raw []byte) []byte {
	if n := plainRun(raw); n == len(raw) {
		return appendText(dst, raw)
	}
	var room [9]byte // the longest head; the right one is known when the text is
	start := len(dst)
	dst = append(dst, room[:]...)
	dst = appendUnescaped(dst, raw)
	text := dst[start+len(room):]
	head := appendHead(room[:0], cborText, uint64(len(text)))
	copy(dst[start:], head)
	n := copy(dst[start+len(head):], text)
	return dst[:start+len(head)+n]
}

// appendUnescaped appends what the inside of a JSON string means, with U+FFFD for halves of surrogate pairs.
func appendUnescaped(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := plainRun(raw)
		dst = append(dst, raw[:n]...)
		if raw = raw[n:]; len(raw) == 0 {
			break
		}
		switch c := raw[1]; c { // raw[0] is a backslash
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			var r rune
			r, raw = escapedRune(raw)
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			dst = append(dst, c)
		}
		raw = raw[2:]
	}
	return dst
}

// escapedRune reads the \uXXXX that raw begins with, or two that are a surrogate pair, and returns what follows.
func escapedRune(raw []byte) (rune, []byte) {
	r, rest := hexRune(raw), raw[6:]
	if utf16.IsSurrogate(r) && len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if both := utf16.DecodeRune(r, hexRune(rest)); both != utf8.RuneError {
			return both, rest[6:]
		}
	}
	return r, rest // AppendRune writes U+FFFD for a surrogate
}

func hexRune(raw []byte) rune {
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
