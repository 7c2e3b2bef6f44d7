package framing

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// appendBody appends {"type":…,"object":…} with the object unchanged.
func appendBody(dst []byte, e WatchEvent) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":`...)
	dst = rawjson.AppendString(dst, e.Type)
	dst = append(dst, `,"object":`...)
	dst = append(dst, e.Object...)
	return append(dst, '}'), nil
}

// appendLine is like appendBody, for framings in which a line break ends the event. It
// compacts an object that contains line breaks.
func appendLine(dst []byte, e WatchEvent) ([]byte, error) {
	if hasLineBreak(e.Object) {
		object, err := rawjson.Compact(e.Object)
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
	decoder jsontext.Decoder // its buffer is reused
	source  eventSource
}

// An eventSource is the io.Reader of a bodyReader's decoder.
type eventSource struct {
	in       *input
	sequence bool  // a record separator within the event means that the event is incomplete
	err      error // the last error
}

func (s *eventSource) Read(p []byte) (int, error) {
	w, err := s.in.available()
	if err == nil && s.sequence {
		if next := bytes.IndexByte(w, recordSeparator); next == 0 {
			err = corrupt("an element of the sequence is incomplete", nil)
		} else if next > 0 {
			w = w[:next]
		}
	}
	if s.err = err; err != nil {
		return 0, err
	}
	n := copy(p, w)
	s.in.take(n)
	return n, nil
}

// reuse returns buf without its content, or nil if it is too large to be kept.
func reuse(buf []byte) []byte {
	if cap(buf) > maxKeptBuffer {
		return nil
	}
	return buf[:0]
}

// readText reads text, which must be one JSON object.
func readText(text []byte) (WatchEvent, error) {
	// Messages of kube-apiserver and the data of SSE end with a newline.
	text = bytes.TrimRight(text, "\n")
	if v := jsontext.Value(text); v.IsValid(rawjson.Lenient) && rawjson.IsCompact(text) {
		return readCompact(text)
	}
	compact, err := rawjson.Compact(text)
	if err != nil {
		return WatchEvent{}, corrupt("", err)
	}
	return readCompact(compact)
}

// readStream reads one object from in, up to its closing bracket.
func (b *bodyReader) readStream(in *input) (WatchEvent, error) {
	source := &b.source
	source.in, source.err = in, nil
	start := in.used
	b.decoder.Reset(source, rawjson.Lenient)
	text, err := b.decoder.ReadValue()
	end := b.decoder.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		end = syntax.ByteOffset
		err = corrupt(fmt.Sprintf("invalid JSON at byte %d of the event", end+1), syntax.Err)
	}
	if source.err != nil {
		return WatchEvent{}, source.err
	}
	// The decoder may have read beyond the event. Return the rest to in. After a syntax error, a
	// part of the rest may be lost, because it was in an earlier buffer of in.
	in.untake(min(in.used-start-int(end), in.pos))
	if err != nil {
		return WatchEvent{}, err
	}
	if end > maxKeptBuffer {
		b.decoder = jsontext.Decoder{} // text keeps the buffer until it was read
	}
	if !rawjson.IsCompact(text) {
		return readText(text)
	}
	return readCompact(text)
}

// readCompact reads the members of an event, which is compact and valid JSON, in any order. It
// ignores unknown members, for forward compatibility.
func readCompact(text []byte) (WatchEvent, error) {
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
