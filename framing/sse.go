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

// SSE is text/event-stream (WHATWG HTML 9.2, server-sent events): an id line with the version, an event line with the type, and as
// data the same JSON object that the framing [JSON] has, so that a page can listen to a type or read all alike.
//
// Initial events and errors have no id: a browser that came back with theirs would miss the initial events behind it.
//
// The Decoder is a [Positioner]. It takes WatchEvent.Version from an event's own id and ignores the event line: the JSON counts.
// A stream that ends between the lines of an event, or within a line, was cut off.
type SSE struct{}

var (
	_ Framer      = SSE{}
	_ Heartbeater = SSE{}
)

// retryMillis is how long a browser waits before it connects again: long enough to spare a server that restarts, short enough for
// people. Browsers that are told nothing wait three to five seconds.
const retryMillis = "1000"

// MediaType implements [Framer].
func (SSE) MediaType() string { return "text/event-stream" }

// AppendEvent implements [Framer]. An object with line breaks becomes several data lines. An ERROR of code 410 resets the last event
// ID: a browser that came back with it would be told the same for ever, and without it is shown the state.
func (SSE) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	if strings.ContainsAny(e.Type, "\r\n") {
		return dst, unfit(listwatch.Invalid, "the type has a line break: "+strconv.Quote(e.Type), nil)
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

// AppendOpening implements [Pacer]: it asks browsers to wait one second before they connect again.
func (SSE) AppendOpening(dst []byte) []byte { return append(dst, "retry: "+retryMillis+"\n\n"...) }

// AppendHeartbeat implements [Pacer]: a comment, and an id where the version is known. A block without data is no event, yet its id
// is kept (HTML 9.2.6, "dispatch the event", step 1): a silent bookmark.
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

type sseReader struct {
	body   bodyReader // its text is the data so far, each line with a newline behind it
	line   []byte     // scratch: the line at hand
	begun  bool       // the first line has been read
	skipLF bool       // the last line ended with CR: an LF right behind it belongs to it

	// The block at hand, which ends at a blank line.
	pending bool   // it has data, an event or an id
	id      string // the last event ID buffer of HTML 9.2.6
	hasID   bool   // id comes from this block

	lastID string // the last event ID string of HTML 9.2.6
}

func (s *sseReader) readEvent(in *input) (WatchEvent, error) {
	s.body.begin()
	s.pending, s.hasID = false, false
	for {
		if err := s.readLine(in); err != nil {
			return WatchEvent{}, err
		}
		if len(s.line) > 0 {
			s.field(s.line)
			if !s.pending {
				in.used = 0 // comments and unknown fields alone are between events
			}
			continue
		}
		s.lastID = s.id
		if len(s.body.text) > 0 {
			return s.dispatch()
		}
		s.pending, s.hasID = false, false
		in.used = 0
	}
}

// dispatch returns the event that a blank line completed.
func (s *sseReader) dispatch() (WatchEvent, error) {
	e, err := s.body.whole()
	if err == nil && s.hasID {
		// An id that is no version is for somebody else: the event says its own version.
		e.Version, _ = listwatch.ParseVersion(s.id)
	}
	return e, err
}

// readLine reads a line into s.line, without its end: LF, CR or CRLF. It never waits for what may follow a CR.
func (s *sseReader) readLine(in *input) error {
	if cap(s.line) > keptScratch {
		s.line = nil
	}
	s.line = s.line[:0]
	for {
		w, err := in.window()
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
	if !s.begun {
		s.begun = true
		s.line = bytes.TrimPrefix(s.line, []byte("\uFEFF")) // HTML 9.2.5: one leading BOM is ignored
	}
	return nil
}

// lineEnd returns where the first line of text ends, or len(text) and false.
func lineEnd(text []byte) (n int, ended bool) {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text, ended = text[:n], true
	}
	if n := bytes.IndexByte(text, '\r'); n >= 0 {
		return n, true
	}
	return len(text), ended
}

// field reads a line that is not blank (HTML 9.2.6).
func (s *sseReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) { // a comment has an empty name
	case "data":
		s.body.text = append(append(s.body.text, value...), '\n')
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
