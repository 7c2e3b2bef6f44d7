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
func (i *Indenter) Write(p []byte) (int, error) {
	for n, c := range p {
		if i.append(c); len(i.buf) >= indentBuffer {
			if err := i.flush(); err != nil {
				return n, err
			}
		}
	}
	return len(p), i.flush()
}

func (i *Indenter) flush() error {
	_, err := i.W.Write(i.buf)
	i.buf = i.buf[:0]
	return err
}

func (i *Indenter) append(c byte) {
	switch {
	case i.inString:
		i.buf = append(i.buf, c)
		i.inString = i.escaped || c != '"'
		i.escaped = !i.escaped && c == '\\'
		return
	case i.depth > 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		return
	case c == '}' || c == ']':
		i.depth--
		if !i.opened {
			i.newLine()
		}
		i.opened = false
		i.buf = append(i.buf, c)
		return
	case i.opened:
		i.newLine()
	}
	i.opened = c == '{' || c == '['
	i.buf = append(i.buf, c)
	switch c {
	case '{', '[':
		i.depth++
	case ',':
		i.newLine()
	case ':':
		i.buf = append(i.buf, ' ')
	case '"':
		i.inString = true
	}
}

func (i *Indenter) newLine() {
	i.buf = append(i.buf, '\n')
	for range min(i.depth, maxIndent) {
		i.buf = append(i.buf, "  "...)
	}
}
