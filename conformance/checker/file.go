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

// The header of a file. Readers refuse other versions: a checker that understood half of a history would judge the wrong one.
const (
	fileFormat  = "listwatch.history"
	fileVersion = 1
)

// maxLine is how many bytes a line may have: a list of some hundred thousand objects.
const maxLine = 32 << 20

// An Entry is one line of a file; one of its fields is set.
type Entry struct {
	Header        *Header          `json:"header,omitempty"`
	Write         *Write           `json:"write,omitempty"`
	Session       *SessionEntry    `json:"session,omitempty"`
	Event         *EventEntry      `json:"frame,omitempty"`
	Connection    *ConnectionEntry `json:"stream,omitempty"`
	End           *EndEntry        `json:"end,omitempty"`
	List          *List            `json:"list,omitempty"`
	InformerState *InformerState   `json:"holding,omitempty"`
	HandlerCall   *HandlerCall     `json:"change,omitempty"`
	Fault         *Fault           `json:"fault,omitempty"`
	Compaction    *Compaction      `json:"floor,omitempty"`
	Heal          *Heal            `json:"heal,omitempty"`
}

// A Header is the first line.
type Header struct {
	Format        string `json:"format"`
	FormatVersion int    `json:"formatVersion"`
	Meta
}

// A SessionEntry is a session without what came of it. Numbers count from zero, in the order of the file.
type SessionEntry struct {
	Number int `json:"number"`
	Session
}

// A FrameEntry is a frame of the session of a number.
type EventEntry struct {
	SessionNumber int `json:"of"`
	ReceivedEvent
}

// A StreamEntry is a stream of the session of a number.
type ConnectionEntry struct {
	SessionNumber int `json:"of"`
	Connection
}

// An EndEntry is the end of the session of a number.
type EndEntry struct {
	SessionNumber int `json:"of"`
	End
}

// A Writer writes a file, line by line. It has one user at a time.
type HistoryWriter struct {
	zip *gzip.Writer
	buf *bufio.Writer
	enc *json.Encoder
}

// NewWriter returns a Writer on w that has written the header. Close ends the file and leaves w open.
func NewHistoryWriter(w io.Writer, m Meta) (*HistoryWriter, error) {
	z := gzip.NewWriter(w)
	b := bufio.NewWriterSize(z, 64<<10)
	out := &HistoryWriter{z, b, json.NewEncoder(b)}
	return out, out.Write(Entry{Header: &Header{fileFormat, fileVersion, m}})
}

// Write adds a line.
func (w *HistoryWriter) Write(e Entry) error {
	if err := w.enc.Encode(e); err != nil {
		return fileError("write", err)
	}
	return nil
}

// Close ends the file.
func (w *HistoryWriter) Close() error {
	if err := errors.Join(w.buf.Flush(), w.zip.Close()); err != nil {
		return fileError("write", err)
	}
	return nil
}

// A Reader reads what a [Writer] wrote. It has one user at a time.
type HistoryReader struct {
	meta  Meta
	zip   *gzip.Reader
	lines *bufio.Scanner
	line  int
}

// NewReader returns a Reader on r, which has read the header.
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
		return nil, in.corrupt(fmt.Sprintf("the first line is no header of %s", fileFormat), nil)
	case h.FormatVersion != fileVersion:
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "read a history", Message: fmt.Sprintf("the file has version %d, want %d", h.FormatVersion, fileVersion),
		}
	default:
		in.meta = h.Meta
	}
	return in, nil
}

// Meta returns what the header says.
func (r *HistoryReader) Meta() Meta { return r.meta }

// Read returns the next line; [io.EOF] at the end of the file. Every other error has code Corrupt: a file that was cut off is one
// that wraps [io.ErrUnexpectedEOF].
func (r *HistoryReader) Read() (Entry, error) {
	var e Entry
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return e, r.corrupt("", err)
		}
		return e, io.EOF
	}
	r.line++
	if err := json.Unmarshal(r.lines.Bytes(), &e); err != nil {
		return Entry{}, r.corrupt("", err)
	}
	return e, nil
}

func (r *HistoryReader) corrupt(message string, cause error) error {
	if message == "" {
		message = fmt.Sprintf("line %d", r.line)
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
