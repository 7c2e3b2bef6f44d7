package checker

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/listwatch/listwatch"
)

// fileFormat and fileVersion identify a history file. A HistoryReader rejects any other version,
// because the checker's verdict could be wrong if the reader understood only a part of the history.
const (
	fileFormat  = "listwatch.history"
	fileVersion = 1
)

// maxLine is the maximum number of bytes in a line. It suffices for a list of several
// hundred thousand objects.
const maxLine = 32 << 20

// An Entry is one line of a history file. Exactly one field is set.
type Entry struct {
	Header        *Header          `json:"header,omitempty"`
	Write         *Write           `json:"write,omitempty"`
	Session       *SessionEntry    `json:"session,omitempty"`
	Event         *EventEntry      `json:"event,omitempty"`
	Connection    *ConnectionEntry `json:"connection,omitempty"`
	End           *EndEntry        `json:"end,omitempty"`
	List          *List            `json:"list,omitempty"`
	InformerState *InformerState   `json:"informerState,omitempty"`
	HandlerCall   *HandlerCall     `json:"handlerCall,omitempty"`
	Fault         *Fault           `json:"fault,omitempty"`
	Compaction    *Compaction      `json:"compaction,omitempty"`
	Heal          *Heal            `json:"heal,omitempty"`
}

// A Header is the first line of a file.
type Header struct {
	Format        string `json:"format"`
	FormatVersion int    `json:"formatVersion"`
	Meta
}

// A SessionEntry describes a session without its events, connections and end, which have
// their own entries. Number counts sessions from zero in the order of the file.
type SessionEntry struct {
	Number int `json:"number"`
	Session
}

// An EventEntry is an event that a session received.
type EventEntry struct {
	SessionNumber int `json:"session"`
	ReceivedEvent
}

// A ConnectionEntry is a connection of a session.
type ConnectionEntry struct {
	SessionNumber int `json:"session"`
	Connection
}

// An EndEntry is the end of a session.
type EndEntry struct {
	SessionNumber int `json:"session"`
	End
}

// A HistoryWriter writes a history file line by line. It is not safe for concurrent use.
type HistoryWriter struct {
	zip *gzip.Writer
	buf *bufio.Writer
	enc *json.Encoder
}

// NewHistoryWriter writes the header to w and returns a HistoryWriter. The caller must call
// Close, which does not close w.
func NewHistoryWriter(w io.Writer, m Meta) (*HistoryWriter, error) {
	z := gzip.NewWriter(w)
	b := bufio.NewWriterSize(z, 64<<10)
	out := &HistoryWriter{z, b, json.NewEncoder(b)}
	return out, out.Write(Entry{Header: &Header{fileFormat, fileVersion, m}})
}

// Write appends a line.
func (h *HistoryWriter) Write(e Entry) error {
	if err := h.enc.Encode(e); err != nil {
		return fileError("write", err)
	}
	return nil
}

// Close flushes the file.
func (h *HistoryWriter) Close() error {
	if err := errors.Join(h.buf.Flush(), h.zip.Close()); err != nil {
		return fileError("write", err)
	}
	return nil
}

// A HistoryReader reads the lines that a [HistoryWriter] wrote. It is not safe for
// concurrent use.
type HistoryReader struct {
	meta  Meta
	zip   *gzip.Reader
	lines *bufio.Scanner
	line  int
}

// NewHistoryReader reads the header from r. It returns an error of code Unsupported for
// another format version, and of code Corrupt if r is not a history file.
func NewHistoryReader(r io.Reader) (*HistoryReader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fileError("read", err)
	}
	in := &HistoryReader{zip: z, lines: bufio.NewScanner(z)}
	in.lines.Buffer(make([]byte, 64<<10), maxLine)
	e, err := in.Read()
	switch h := e.Header; {
	case errors.Is(err, io.EOF):
		return nil, fileError("read", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, err
	case h == nil || h.Format != fileFormat:
		return nil, in.corrupt(fmt.Sprintf("the first line must be a %s header", fileFormat), nil)
	case h.FormatVersion != fileVersion:
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "read a history",
			Message: fmt.Sprintf("format version %d is not supported, want %d", h.FormatVersion, fileVersion),
		}
	default:
		in.meta = h.Meta
	}
	return in, nil
}

// Meta returns the metadata from the header.
func (h *HistoryReader) Meta() Meta { return h.meta }

// Read returns the next line, or [io.EOF] at the end of the file. All other errors have
// code Corrupt; for a truncated file, the error wraps [io.ErrUnexpectedEOF].
func (h *HistoryReader) Read() (Entry, error) {
	var e Entry
	if !h.lines.Scan() {
		if err := h.lines.Err(); err != nil {
			return e, h.corrupt("", err)
		}
		return e, io.EOF
	}
	h.line++
	if err := json.Unmarshal(h.lines.Bytes(), &e); err != nil {
		return Entry{}, h.corrupt("", err)
	}
	return e, nil
}

func (h *HistoryReader) corrupt(message string, cause error) error {
	if message == "" {
		message = fmt.Sprintf("line %d", h.line)
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "read a history", Message: message, Err: cause}
}

func fileError(op string, err error) error {
	code := listwatch.Unknown
	if op == "read" {
		code = listwatch.Corrupt
	}
	return &listwatch.Error{Code: code, Op: op + " a history", Err: err}
}
