package framing

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

var errNotObject = errors.New("must be a JSON object")

// A cborForm is a way to represent JSON values that CBOR can represent in several ways.
type cborForm struct {
	// text is the major type of strings.
	text byte
	// number appends a JSON number.
	number func(dst, text []byte) ([]byte, error)
}

// exactCBOR keeps numbers exactly. kubernetesCBOR is the form of [AppendCBOR].
var (
	exactCBOR      = cborForm{text: cborText, number: appendNumber}
	kubernetesCBOR = cborForm{text: cborBytes, number: appendRoundedNumber}
)

// appendObject appends the JSON object src as CBOR. CBOR has the number of members before the
// members, so appendObject reads src three times: to validate, to count and to write. Only
// the first pass must handle invalid JSON.
func (f cborForm) appendObject(dst, src []byte) ([]byte, error) {
	if err := checkObject(src); err != nil {
		return dst, encodeError(listwatch.Invalid, "the object", err)
	}
	var fixed [64]int // avoids an allocation for most objects
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
			end = rawjson.StringEnd(src, i)
			dst = f.appendString(dst, src[i:end])
		case 't':
			end, dst = i+len("true"), append(dst, cborSimple<<5|cborTrue)
		case 'f':
			end, dst = i+len("false"), append(dst, cborSimple<<5|cborFalse)
		case 'n':
			end, dst = i+len("null"), append(dst, cborSimple<<5|cborNull)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end = numberEnd(src, i)
			if dst, err = f.number(dst, src[i:end]); err != nil {
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
	if v := jsontext.Value(src); v.Kind() != '{' || !v.IsValid(rawjson.Lenient) {
		_, err := rawjson.Compact(src)
		return cmp.Or(err, errNotObject)
	}
	return nil
}

// countItems appends the number of elements or members of each array and object of src, in the
// order of the opening brackets.
func countItems(counts []int, src []byte) []int {
	var fixed [32]int
	open := fixed[:0] // a stack of indices into counts
	for i := 0; i < len(src); i++ {
		c := src[i]
		if c <= ' ' || c == ':' {
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
			i = rawjson.StringEnd(src, i) - 1
		}
	}
	return counts
}

func numberEnd(src []byte, i int) int {
	for i < len(src) && (src[i] >= '0' && src[i] <= '9' || strings.IndexByte("-+.eE", src[i]) >= 0) {
		i++
	}
	return i
}

// appendHead appends the head of an item in the shortest form. The head consists of the major type
// and the argument n.
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

// appendText appends a string that is not JSON.
func (f cborForm) appendText(dst []byte, text string) []byte {
	return append(appendHead(dst, f.text, uint64(len(text))), text...)
}

// appendString appends a JSON string, with its quotes, as CBOR. An unpaired surrogate becomes
// U+FFFD.
func (f cborForm) appendString(dst, quoted []byte) []byte {
	if raw := quoted[1 : len(quoted)-1]; bytes.IndexByte(raw, '\\') < 0 {
		return append(appendHead(dst, f.text, uint64(len(raw))), raw...)
	}
	// Reserve room for the longest head, because the size of the head depends on the length of
	// the decoded text.
	var room [9]byte
	start := len(dst)
	dst = append(dst, room[:]...)
	dst, _ = jsontext.AppendUnquote(dst, quoted) // the error reports a surrogate that was replaced
	text := dst[start+len(room):]
	head := appendHead(room[:0], f.text, uint64(len(text)))
	copy(dst[start:], head)
	n := copy(dst[start+len(head):], text)
	return dst[:start+len(head)+n]
}
