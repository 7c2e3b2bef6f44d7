package rawjson

import "io"

// An Indenter writes JSON with line breaks and an indent of two spaces, like json.Indent. It
// holds a few KiB, whatever the length of the JSON.
type Indenter struct {
	// W receives the indented JSON.
	W io.Writer

	buf      []byte
	depth    int
	opened   bool // the last byte opened an object or array, which may turn out to be empty
	inString bool
	escaped  bool
}

// maxIndent limits the levels of the indent, because the indent of deeper JSON would be many times
// longer than the JSON.
const maxIndent = 32

// indentBuffer is the number of bytes after which an Indenter calls W.Write.
const indentBuffer = 4 << 10

// Write writes the next part of one valid JSON value. It may end anywhere.
func (w *Indenter) Write(p []byte) (int, error) {
	for i, c := range p {
		if w.append(c); len(w.buf) >= indentBuffer {
			if err := w.flush(); err != nil {
				return i, err
			}
		}
	}
	return len(p), w.flush()
}

func (w *Indenter) flush() error {
	_, err := w.W.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *Indenter) append(c byte) {
	switch {
	case w.inString:
		w.buf = append(w.buf, c)
		w.inString = w.escaped || c != '"'
		w.escaped = !w.escaped && c == '\\'
		return
	case w.depth > 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		return
	case c == '}' || c == ']':
		w.depth--
		if !w.opened {
			w.newLine()
		}
		w.opened = false
		w.buf = append(w.buf, c)
		return
	case w.opened:
		w.newLine()
	}
	w.opened = c == '{' || c == '['
	w.buf = append(w.buf, c)
	switch c {
	case '{', '[':
		w.depth++
	case ',':
		w.newLine()
	case ':':
		w.buf = append(w.buf, ' ')
	case '"':
		w.inString = true
	}
}

func (w *Indenter) newLine() {
	w.buf = append(w.buf, '\n')
	for range min(w.depth, maxIndent) {
		w.buf = append(w.buf, "  "...)
	}
}
