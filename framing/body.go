package framing

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/jsonscan"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// appendBody appends {"type":…,"object":…} with the object unchanged.
func appendBody(dst []byte, e WatchEvent) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":`...)
	dst = appendQuoted(dst, e.Type)
	dst = append(dst, `,"object":`...)
	dst = append(dst, e.Object...)
	return append(dst, '}'), nil
}

// appendLine is like appendBody, for framings in which a line break ends the event. It
// compacts an object that contains line breaks.
func appendLine(dst []byte, e WatchEvent) ([]byte, error) {
	if hasLineBreak(e.Object) {
		var s jsonscan.Scanner
		object, err := s.Compact(bytes.Clone(e.Object))
		if err != nil {
			return dst, encodeError(listwatch.Invalid, "the object", err)
		}
		e.Object = object
	}
	return appendBody(dst, e)
}

func hasLineBreak(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// check returns an error if no framing can carry w. The caller must ensure that the object is
// JSON, because check looks only at its first byte.
func (w WatchEvent) check() error {
	if w.Type == "" || !utf8.ValidString(w.Type) {
		return encodeError(listwatch.Invalid, fmt.Sprintf("type %q: must be non-empty UTF-8", w.Type), nil)
	}
	if len(w.Object) == 0 || w.Object[0] != '{' {
		return encodeError(listwatch.Invalid, "the object must be a JSON object, got "+excerpt(w.Object), nil)
	}
	return nil
}

// A bodyReader converts the JSON text of an event to a WatchEvent.
type bodyReader struct {
	scanner jsonscan.Scanner
	text    []byte // the text of the current event; the buffer is reused
}

// begin prepares b for the next event. A large buffer is released and not reused.
func (b *bodyReader) begin() {
	if cap(b.text) > maxKeptBuffer {
		b.text = nil
	}
	b.text = b.text[:0]
	b.scanner.Reset()
}

// readStream reads one object from the input, up to its closing bracket. The caller must call begin
// first.
func (b *bodyReader) readStream(in *input) (WatchEvent, error) {
	for !b.scanner.Done() {
		w, err := in.available()
		if err != nil {
			return WatchEvent{}, err
		}
		var n int
		b.text, n, err = b.scanner.Scan(b.text, w)
		in.take(n)
		if err != nil {
			return WatchEvent{}, corrupt(fmt.Sprintf("invalid JSON at byte %d of the event", in.used+1), err)
		}
	}
	return b.event(b.text)
}

// readText reads b.text, which must be one JSON object.
func (b *bodyReader) readText() (WatchEvent, error) {
	text, err := b.scanner.Compact(b.text)
	if err != nil {
		return WatchEvent{}, corrupt("", err)
	}
	return b.event(text)
}

// event reads the members of a compact object in any order. It ignores unknown members, for forward
// compatibility.
func (b *bodyReader) event(text []byte) (WatchEvent, error) {
	if !utf8.Valid(text) {
		return WatchEvent{}, corrupt("the event is not valid UTF-8", nil)
	}
	var e WatchEvent
	var object rawjson.Span
	err := rawjson.Members(text, func(name string, value rawjson.Span) (err error) {
		switch name {
		case "type":
			e.Type, err = typeName(value.Of(text))
		case "object":
			object = value
		}
		return err
	})
	switch {
	case err != nil:
		return WatchEvent{}, corrupt("type", err)
	case e.Type == "":
		return WatchEvent{}, corrupt("the event has no type: "+excerpt(text), nil)
	case object.Empty() || text[object.Start] != '{':
		return WatchEvent{}, corrupt("the event has no object: "+excerpt(text), nil)
	}
	e.Object = pool.Clone(object.Of(text)) // exact size, because the caller may keep it
	return e, nil
}

// typeName decodes the type of an event. It does not allocate for the known types.
func typeName(raw []byte) (string, error) {
	switch string(raw) {
	case `"ADDED"`:
		return "ADDED", nil
	case `"MODIFIED"`:
		return "MODIFIED", nil
	case `"DELETED"`:
		return "DELETED", nil
	case `"BOOKMARK"`:
		return "BOOKMARK", nil
	case `"ERROR"`:
		return TypeError, nil
	}
	return rawjson.String(raw)
}

// appendQuoted appends text, which must be valid UTF-8, as a JSON string with the fewest possible
// escapes.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		c := text[i]
		if jsonscan.IsPlain[c] {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		if k := strings.IndexByte("\"\\\b\f\n\r\t", c); k >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[k])
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}
