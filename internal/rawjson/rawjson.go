// Package rawjson finds the members of JSON objects without decoding the values, so that
// numbers beyond float64 and unusual escapes are preserved exactly. [Compact] validates a
// document. All other functions expect compact and valid JSON, such as the result of
// Compact, and may panic otherwise.
package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Span is the part document[Start:End] of a document.
type Span struct{ Start, End int }

// Empty reports whether s has no bytes.
func (s Span) Empty() bool { return s.End <= s.Start }

// Of returns the bytes of s in doc. Their capacity is limited, so that appending to them
// copies them.
func (s Span) Of(doc []byte) []byte { return doc[s.Start:s.End:s.End] }

// Shift converts s, a span of a part that starts at n, to a span of the whole document.
func (s Span) Shift(n int) Span { return Span{s.Start + n, s.End + n} }

// Lenient accepts the same JSON as encoding/json: a name may occur twice, and an escape may be half
// of a surrogate pair. Strings and numbers stay as they are written.
var Lenient = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true),
)

// ErrIncomplete is the error for JSON text that ends too early.
var ErrIncomplete = errors.New("incomplete JSON")

// Compact returns a copy of src without insignificant space. If src is not valid JSON, the
// error contains the position. Text that is not UTF-8 is rejected, because a WebSocket text
// message cannot contain it.
func Compact(src []byte) ([]byte, error) {
	if !utf8.Valid(src) {
		return nil, errors.New("not valid UTF-8")
	}
	dst, err := jsontext.AppendFormat(make([]byte, 0, len(src)), src, Lenient)
	s, malformed := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == nil:
		return dst, nil
	case !malformed:
		return nil, err
	case s.Err == io.ErrUnexpectedEOF:
		return nil, ErrIncomplete
	case bytes.HasPrefix(src, []byte("\ufeff")):
		return nil, errors.New("invalid JSON: byte order mark at byte 1 (rfc8259#section-8.1)")
	}
	return nil, fmt.Errorf("invalid JSON: %w at byte %d", s.Err, s.ByteOffset+1)
}

// IsCompact reports whether doc, which is valid JSON, has no insignificant space.
func IsCompact(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			i = StringEnd(doc, i) - 1
		case c <= ' ':
			return false
		}
	}
	return true
}

// Members calls f with the name and the value of each member of doc, an object, in the order of
// doc, until f returns an error.
func Members(doc []byte, f func(name string, value Span) error) error {
	return rawMembers(doc, func(key []byte, value Span) error {
		name, err := memberName(key)
		if err != nil {
			return err
		}
		return f(name, value)
	})
}

// MemberBytes is like Members, but does not allocate for names without escapes: such a name is a
// part of doc.
func MemberBytes(doc []byte, f func(name []byte, value Span) error) error {
	return rawMembers(doc, func(key []byte, value Span) error {
		if bytes.IndexByte(key, '\\') < 0 {
			return f(key[1:len(key)-1], value)
		}
		name, err := String(key)
		if err != nil {
			return err
		}
		return f([]byte(name), value)
	})
}

func rawMembers(doc []byte, f func(key []byte, value Span) error) error {
	if len(doc) < 2 || doc[0] != '{' {
		return fmt.Errorf("must be a JSON object, got %s", kind(doc))
	}
	for i := 1; doc[i] != '}'; {
		var key, value Span
		key, value, i = nextMember(doc, i)
		if err := f(key.Of(doc), value); err != nil {
			return err
		}
	}
	return nil
}

// memberName is like String, but does not allocate for the names that almost every object and
// event has.
func memberName(raw []byte) (string, error) {
	switch string(raw[1 : len(raw)-1]) {
	case "type":
		return "type", nil
	case "object":
		return "object", nil
	case "name":
		return "name", nil
	case "namespace":
		return "namespace", nil
	case "uid":
		return "uid", nil
	case "resourceVersion":
		return "resourceVersion", nil
	case "generation":
		return "generation", nil
	case "creationTimestamp":
		return "creationTimestamp", nil
	case "labels":
		return "labels", nil
	case "annotations":
		return "annotations", nil
	}
	return String(raw)
}

// Elements calls f with each element of doc, an array, until f returns an error.
func Elements(doc []byte, f func(value Span) error) error {
	if len(doc) < 2 || doc[0] != '[' {
		return fmt.Errorf("must be a JSON array, got %s", kind(doc))
	}
	for i := 1; doc[i] != ']'; {
		end := valueEnd(doc, i)
		if err := f(Span{i, end}); err != nil {
			return err
		}
		i = end
		if doc[i] == ',' {
			i++
		}
	}
	return nil
}

// Find returns the value of the named member of the JSON object doc, or an empty Span if doc has
// no such member. If several members have the same name, it returns the last one, as
// encoding/json does.
func Find(doc []byte, name string) (Span, error) {
	if len(doc) < 2 || doc[0] != '{' {
		return Span{}, fmt.Errorf("must be a JSON object, got %s", kind(doc))
	}
	var found Span
	for i := 1; doc[i] != '}'; {
		var key, value Span
		key, value, i = nextMember(doc, i)
		if IsString(key.Of(doc), name) {
			found = value
		}
	}
	return found, nil
}

// nextMember returns the key and the value of the member that starts at doc[i], and the index of
// the next member or of the closing bracket.
func nextMember(doc []byte, i int) (key, value Span, after int) {
	key = Span{i, StringEnd(doc, i)}
	value = Span{key.End + 1, valueEnd(doc, key.End+1)}
	if after = value.End; doc[after] == ',' {
		after++
	}
	return key, value, after
}

// IsString reports whether the JSON string raw has the value s.
func IsString(raw []byte, s string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	decoded, err := String(raw)
	return err == nil && decoded == s
}

// String decodes a JSON string. It returns the empty string for null.
func String(raw []byte) (string, error) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	if string(raw) == "null" {
		return "", nil
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("must be a string, got %s", kind(raw))
	}
	s, _ := jsontext.AppendUnquote(nil, raw) // the error reports a surrogate that was replaced
	return string(s), nil
}

// AppendString appends s as a JSON string with the fewest possible escapes. Bytes that are not
// UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error reports the bytes that were replaced
	return dst
}

// StringMap decodes a JSON object whose values are strings. It returns nil for null.
func StringMap(raw []byte) (map[string]string, error) { return FillStringMap(nil, raw) }

// FillStringMap is like StringMap, but fills m, which must be empty. If m is nil, it
// creates a map.
func FillStringMap(m map[string]string, raw []byte) (map[string]string, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	if m == nil {
		m = make(map[string]string)
	}
	err := Members(raw, func(name string, value Span) error {
		s, err := String(value.Of(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m[name] = s
		return nil
	})
	return m, err
}

// valueEnd returns the index after the value that starts at doc[i].
func valueEnd(doc []byte, i int) int {
	switch doc[i] {
	case '"':
		return StringEnd(doc, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch doc[i] {
			case '"':
				i = StringEnd(doc, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(doc) && doc[i] != ',' && doc[i] != '}' && doc[i] != ']' && doc[i] != ':' {
		i++
	}
	return i
}

// StringEnd returns the index after the string that starts at doc[i].
func StringEnd(doc []byte, i int) int {
	for short := i + 16; i < short; { // most strings end before a call of IndexByte would pay off
		switch i++; doc[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	i++
	quote := i + bytes.IndexByte(doc[i:], '"')
	for {
		escape := bytes.IndexByte(doc[i:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		if i += escape + 2; i > quote { // the quote is escaped
			quote = i + bytes.IndexByte(doc[i:], '"')
		}
	}
}

// kind returns the kind of a JSON value for an error message.
func kind(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
