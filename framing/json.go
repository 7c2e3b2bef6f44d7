package framing

import (
	"bytes"
	"errors"
	"io"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// JSON is application/json, the framing of Kubernetes: each event is one JSON object
// {"type":…,"object":…} on one line. The Decoder finds the end of an event by its brackets,
// so it also accepts events that contain line breaks, and events without a line break
// between them.
type JSON struct{}

var _ SubprotocolFramer = JSON{}

// MediaType implements [Framer].
func (JSON) MediaType() string { return "application/json" }

// AppendEvent implements [Framer].
func (JSON) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	out, err := appendLine(dst, e)
	if err != nil {
		return dst, err
	}
	return append(out, '\n'), nil
}

// NewDecoder implements [Framer].
func (JSON) NewDecoder(r io.Reader, limit int) Decoder { return newDecoder(r, limit, &jsonReader{}) }

// AppendMessage implements [MessageFramer].
func (JSON) AppendMessage(dst []byte, e WatchEvent) ([]byte, error) { return appendLine(dst, e) }

// DecodeMessage implements [MessageFramer]. It accepts white space around the event,
// because kube-apiserver ends its messages with a newline.
func (JSON) DecodeMessage(message []byte) (WatchEvent, error) {
	e, err := readText(message)
	if errors.Is(err, rawjson.ErrIncomplete) {
		err = truncated()
	}
	return e, err
}

// Binary implements [MessageFramer].
func (JSON) Binary() bool { return false }

// Subprotocol implements [SubprotocolFramer].
func (JSON) Subprotocol() string { return "listwatch.v1.json" }

type jsonReader struct{ body bodyReader }

func (*jsonReader) mayHaveEvent(p []byte) bool { return hasLine(p) }

// hasLine reports whether p has a line break that follows something other than white space.
func hasLine(p []byte) bool {
	p = bytes.TrimLeft(p, " \t\r\n")
	return bytes.IndexByte(p, '\n') >= 0
}

func (j *jsonReader) readEvent(in *input) (WatchEvent, error) {
	if err := skipSpace(in); err != nil {
		return WatchEvent{}, err
	}
	return j.body.readStream(in)
}

// skipSpace skips the white space between two events.
func skipSpace(in *input) error {
	for {
		w, err := in.available()
		if err != nil {
			return err
		}
		rest := bytes.TrimLeft(w, " \n\r\t")
		in.skip(len(w) - len(rest))
		if len(rest) > 0 {
			return nil
		}
	}
}
