// Package rawjson looks into JSON without decoding it: it finds members and leaves every byte as it was written, so that numbers
// beyond float64 and strings with odd escapes survive. Documents are made valid and compact once, by [Compact]; everything else
// trusts that and only walks.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Span is a piece of a document: document[Start:End].
type Span struct{ Start, End int }

// Empty reports whether s is no piece at all.
func (s Span) Empty() bool { return s.End <= s.Start }

// Of returns the bytes of s in doc, which can't be grown into what follows them.
func (s Span) Of(doc []byte) []byte { return doc[s.Start:s.End:s.End] }

// Shift returns s as seen from a document in which its own begins at n.
func (s Span) Shift(n int) Span { return Span{s.Start + n, s.End + n} }

// Compact returns a copy of src without insignificant space, or an error that says where src is no JSON. Text that is no UTF-8
// is refused: a WebSocket text message could not carry it.
func Compact(src []byte) ([]byte, error) {
	if !utf8.Valid(src) {
		return nil, errors.New("not valid UTF-8")
	}
	var buf bytes.Buffer
	buf.Grow(len(src))
	if err := json.Compact(&buf, src); err != nil {
		return nil, located(src, err)
	}
	return buf.Bytes(), nil
}

// located adds to the error of json.Compact where in src it lies, which only json.Unmarshal tells.
func located(src []byte, err error) error {
	var raw json.RawMessage
	if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(src, &raw)); ok {
		return fmt.Errorf("%w at byte %d", s, s.Offset)
	}
	return err
}

// Members calls f with the name and the place of each member of doc, a compact JSON object, in the writer's order, until f fails.
func Members(doc []byte, f func(name string, value Span) error) error {
	if len(doc) < 2 || doc[0] != '{' {
		return fmt.Errorf("want a JSON object, got %s", kind(doc))
	}
	for i := 1; doc[i] != '}'; {
		var key, value Span
		key, value, i = next(doc, i)
		name, err := memberName(key.Of(doc))
		if err != nil {
			return err
		}
		if err := f(name, value); err != nil {
			return err
		}
	}
	return nil
}

// memberName is String, without memory for the names that are in nearly every object and event.
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

// Elements calls f with the place of each element of doc, a compact JSON array, until f fails.
func Elements(doc []byte, f func(value Span) error) error {
	if len(doc) < 2 || doc[0] != '[' {
		return fmt.Errorf("want a JSON array, got %s", kind(doc))
	}
	for i := 1; doc[i] != ']'; {
		end := skip(doc, i)
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

// Find returns the place of the value of the named member of doc, a compact JSON object; an empty Span where there is none. Of
// members with one name the last counts, as in encoding/json.
func Find(doc []byte, name string) (Span, error) {
	if len(doc) < 2 || doc[0] != '{' {
		return Span{}, fmt.Errorf("want a JSON object, got %s", kind(doc))
	}
	var found Span
	for i := 1; doc[i] != '}'; {
		var key, value Span
		key, value, i = next(doc, i)
		if spells(key.Of(doc), name) {
			found = value
		}
	}
	return found, nil
}

// next returns the places of the member of an object that begins at doc[i], and where what follows it begins.
func next(doc []byte, i int) (key, value Span, after int) {
	key = Span{i, skipString(doc, i)}
	value = Span{key.End + 1, skip(doc, key.End+1)}
	if after = value.End; doc[after] == ',' {
		after++
	}
	return key, value, after
}

// spells reports whether raw, a JSON string, is s. It decodes only what has escapes.
func spells(raw []byte, s string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	decoded, err := String(raw)
	return err == nil && decoded == s
}

// String decodes a JSON string; null is the empty string.
func String(raw []byte) (string, error) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	if string(raw) == "null" {
		return "", nil
	}
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", fmt.Errorf("want a string, got %s", kind(raw))
	}
	return s, nil
}

// AppendString appends s as JSON, without the escapes that are for HTML. What is no UTF-8 in it becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// StringMap decodes a JSON object of strings; null is nil.
func StringMap(raw []byte) (map[string]string, error) { return FillStringMap(nil, raw) }

// FillStringMap is StringMap into m, which is empty; nil: into a new map.
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

// skip returns the end of the value that begins at doc[i].
func skip(doc []byte, i int) int {
	switch doc[i] {
	case '"':
		return skipString(doc, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch doc[i] {
			case '"':
				i = skipString(doc, i) - 1
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

func skipString(doc []byte, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// kind names the kind of a JSON value, for an error message.
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
