package framing

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// appendBody appends {"type":…,"object":…}, the object as it is.
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

// appendLine is appendBody for framings in which a line break would end the event: an object that has some is made compact.
func appendLine(dst []byte, e WatchEvent) ([]byte, error) {
	if hasLineBreak(e.Object) {
		var s scanner
		object, err := s.compactObject(bytes.Clone(e.Object))
		if err != nil {
			return dst, unfit(listwatch.Invalid, "the object", err)
		}
		e.Object = object
	}
	return appendBody(dst, e)
}

func hasLineBreak(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// check looks for what no framing can carry. It does not read the whole object, which is JSON by contract.
func (w WatchEvent) check() error {
	if w.Type == "" || !utf8.ValidString(w.Type) {
		return unfit(listwatch.Invalid, fmt.Sprintf("the type must be a word, got %q", w.Type), nil)
	}
	if len(w.Object) == 0 || w.Object[0] != '{' {
		return unfit(listwatch.Invalid, "the object must be a JSON object, got "+excerpt(w.Object), nil)
	}
	return nil
}

// A bodyReader turns the JSON text of an event into a WatchEvent.
type bodyReader struct {
	scanner scanner
	text    []byte // scratch: the event at hand
}

// begin empties the scratch, and lets go of one that a large event has left behind.
func (b *bodyReader) begin() {
	if cap(b.text) > keptScratch {
		b.text = nil
	}
	b.text = b.text[:0]
	b.scanner.reset()
}

// stream reads one object from in up to its closing bracket. b has begun.
func (b *bodyReader) stream(in *input) (WatchEvent, error) {
	for !b.scanner.done() {
		w, err := in.window()
		if err != nil {
			return WatchEvent{}, err
		}
		var n int
		b.text, n, err = b.scanner.scan(b.text, w)
		in.take(n)
		if err != nil {
			return WatchEvent{}, corrupt(fmt.Sprintf("no JSON at byte %d of the event", in.used+1), err)
		}
	}
	return b.event(b.text)
}

// whole reads b.text, which holds one object with any space.
func (b *bodyReader) whole() (WatchEvent, error) {
	text, err := b.scanner.compactObject(b.text)
	if err != nil {
		return WatchEvent{}, corrupt("", err)
	}
	return b.event(text)
}

// event reads the members of a compact object, in any order. Others than type and object are for peers of the future.
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
	e.Object = pool.Clone(object.Of(text)) // as large as it is: the caller may keep it for long
	return e, nil
}

// typeName decodes the type of an event, without memory for those that are known.
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

// appendQuoted appends text, which is valid UTF-8, as a JSON string. Nothing is escaped but what must be.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		c := text[i]
		if plain[c] {
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
