package framing

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// SSE is text/event-stream (WHATWG HTML 9.2, server-sent events): an id line with the
// version, an event line with the type, and data lines with the same JSON as in the framing
// [JSON]. A page can listen to one type, or parse the data of all events.
//
// Initial events and errors have no id. A browser that resumed from the id of an initial event
// would miss other initial events.
//
// The Decoder is a [Positioner]. WatchEvent.Version is the id of the event itself. The event line
// is ignored, because the JSON has the type. A stream that ends within an event, or within a
// line, was truncated.
type SSE struct{}

var (
	_ Framer      = SSE{}
	_ Heartbeater = SSE{}
)

// retryMillis is the time in milliseconds after which a browser reconnects. It gives a
// server time to restart, and is short enough for users. By default, browsers wait three to
// five seconds.
const retryMillis = "1000"

// MediaType implements [Framer].
func (SSE) MediaType() string { return "text/event-stream" }

// AppendEvent implements [Framer]. An object with line breaks becomes several data lines. An ERROR
// of code 410 resets the last event ID: with the old ID a browser would receive the same error
// again and again, but without an ID it receives the state.
func (SSE) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	if strings.ContainsAny(e.Type, "\r\n") {
		return dst, encodeError(listwatch.Invalid, "the type has a line break: "+strconv.Quote(e.Type), nil)
	}
	out := dst
	switch {
	case e.Version != 0:
		out = appendID(out, e.Version)
	case isExpired(e):
		out = append(out, "id:\n"...)
	}
	out = append(out, "event: "...)
	out = append(out, e.Type...)
	out = append(out, "\ndata: "...)
	body := len(out)
	out, err := appendBody(out, e)
	if err != nil {
		return dst, err
	}
	if text := out[body:]; hasLineBreak(text) {
		out = appendDataLines(out[:body], bytes.Clone(text))
	}
	return append(out, "\n\n"...), nil
}

func isExpired(e WatchEvent) bool {
	var status struct {
		Code int `json:"code"`
	}
	return e.Type == TypeError && json.Unmarshal(e.Object, &status) == nil && status.Code == http.StatusGone
}

func appendDataLines(dst, text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return append(dst, bytes.ReplaceAll(text, []byte("\n"), []byte("\ndata: "))...)
}

func appendID(dst []byte, v listwatch.Version) []byte {
	dst = append(dst, "id: "...)
	dst = strconv.AppendUint(dst, uint64(v), 10)
	return append(dst, '\n')
}

// AppendOpening implements [Heartbeater]. It makes browsers wait one second before they reconnect.
func (SSE) AppendOpening(dst []byte) []byte { return append(dst, "retry: "+retryMillis+"\n\n"...) }

// AppendHeartbeat implements [Heartbeater]. It appends a comment and, if at is not zero, an id. A
// block without data is not an event, but browsers keep its id (HTML 9.2.6, "dispatch the event",
// step 1) and resume from it.
func (SSE) AppendHeartbeat(dst []byte, at listwatch.Version) []byte {
	dst = append(dst, ":\n"...)
	if at != 0 {
		dst = appendID(dst, at)
	}
	return append(dst, '\n')
}

var _ Positioner = (*sseDecoder)(nil)

// NewDecoder implements [Framer].
func (SSE) NewDecoder(r io.Reader, limit int) Decoder {
	s := &sseReader{}
	return &sseDecoder{decoder: newDecoder(r, limit, s), lines: s}
}

type sseDecoder struct {
	*decoder
	lines *sseReader
}

// LastEventID implements [Positioner].
func (d *sseDecoder) LastEventID() string { return d.lines.lastID }

// Buffered implements [Buffered].
func (d *sseDecoder) Buffered() (e WatchEvent, ok bool) {
	before := *d.lines
	if e, ok = d.decoder.Buffered(); !ok {
		*d.lines = before // the buffers may be overwritten, because readEvent resets them
	}
	return e, ok
}

type sseReader struct {
	text    []byte // the data so far, with a newline after each line; the buffer is reused
	line    []byte // the current line; the buffer is reused
	started bool   // the first line has been read
	skipLF  bool   // the last line ended with CR, so a following LF belongs to it

	// These fields describe the current block, which ends at a blank line.
	pending bool   // the block has data, an event or an id
	id      string // the last event ID buffer of HTML 9.2.6
	hasID   bool   // the block has an id

	lastID string // the last event ID string of HTML 9.2.6
}

func (s *sseReader) mayHaveEvent(p []byte) bool { return hasLine(p) }

func (s *sseReader) readEvent(in *input) (WatchEvent, error) {
	s.text = reuse(s.text)
	s.pending, s.hasID = false, false
	for {
		if err := s.readLine(in); err != nil {
			return WatchEvent{}, err
		}
		if len(s.line) > 0 {
			s.field(s.line)
			if !s.pending {
				in.used = 0 // comments and unknown fields do not belong to an event
			}
			continue
		}
		s.lastID = s.id
		if len(s.text) > 0 {
			return s.dispatch()
		}
		s.pending, s.hasID = false, false
		in.used = 0
	}
}

// dispatch returns the event of a complete block.
func (s *sseReader) dispatch() (WatchEvent, error) {
	e, err := readText(s.text)
	if err == nil && s.hasID {
		// An id that is not a version is ignored, because the object contains its version.
		e.Version, _ = listwatch.ParseVersion(s.id)
	}
	return e, err
}

// readLine reads a line into s.line, without the terminating LF, CR or CRLF. After a CR it
// does not wait for the next byte.
func (s *sseReader) readLine(in *input) error {
	s.line = reuse(s.line)
	for {
		w, err := in.available()
		if err != nil {
			return err
		}
		if s.skipLF {
			s.skipLF = false
			if w[0] == '\n' {
				in.skip(1)
				continue
			}
		}
		n, ended := lineEnd(w)
		s.line = append(s.line, w[:n]...)
		in.take(n)
		if ended {
			s.skipLF = w[n] == '\r'
			in.take(1)
			break
		}
	}
	if !s.started {
		s.started = true
		s.line = bytes.TrimPrefix(s.line, []byte("\uFEFF")) // HTML 9.2.5: ignore one leading BOM
	}
	return nil
}

// lineEnd returns the length of the first line of text, or len(text) and false if the line is
// incomplete.
func lineEnd(text []byte) (n int, ended bool) {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text, ended = text[:n], true
	}
	if n := bytes.IndexByte(text, '\r'); n >= 0 {
		return n, true
	}
	return len(text), ended
}

// field processes a line that is not blank (HTML 9.2.6).
func (s *sseReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) { // a comment has an empty name
	case "data":
		s.text = append(append(s.text, value...), '\n')
		s.pending = true
	case "event":
		s.pending = true
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return
		}
		s.id, s.hasID = string(value), true
		s.pending = true
	}
}
