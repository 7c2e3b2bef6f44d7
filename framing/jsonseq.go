package framing

import "io"

// recordSeparator (RS) starts each element of a JSON text sequence (RFC 7464 2.2).
const recordSeparator = 0x1E

// JSONSeq is application/json-seq (RFC 7464): each event consists of RS, one JSON object
// and LF. An incomplete element is an error. RFC 7464 2.3 allows a reader to skip it, but
// then the watch would miss an event.
type JSONSeq struct{}

var _ Framer = JSONSeq{}

// MediaType implements [Framer].
func (JSONSeq) MediaType() string { return "application/json-seq" }

// AppendEvent implements [Framer].
func (JSONSeq) AppendEvent(dst []byte, e WatchEvent) ([]byte, error) {
	out, err := appendLine(append(dst, recordSeparator), e)
	if err != nil {
		return dst, err
	}
	return append(out, '\n'), nil
}

// NewDecoder implements [Framer].
func (JSONSeq) NewDecoder(r io.Reader, limit int) Decoder {
	return newDecoder(r, limit, &jsonSeqReader{bodyReader{source: eventSource{sequence: true}}})
}

type jsonSeqReader struct{ body bodyReader }

func (*jsonSeqReader) mayHaveEvent(p []byte) bool { return hasLine(p) }

func (j *jsonSeqReader) readEvent(in *input) (WatchEvent, error) {
	// The closing bracket ends an event, so the previous event was returned without waiting
	// for its LF. Skip that LF now.
	if err := skipSpace(in); err != nil {
		return WatchEvent{}, err
	}
	c, err := in.next()
	for separators := 0; err == nil && c == recordSeparator; separators++ {
		if c, err = peek(in); err != nil {
			return WatchEvent{}, err
		}
		if c != recordSeparator { // RFC 7464 2.1: several RS in a row start one element
			return j.body.readStream(in)
		}
		in.take(1)
	}
	if err != nil {
		return WatchEvent{}, err
	}
	return WatchEvent{}, corrupt("an element of the sequence starts with "+excerpt([]byte{c})+", must be RS", nil)
}

// peek returns the next byte without consuming it.
func peek(in *input) (byte, error) {
	w, err := in.available()
	if err != nil {
		return 0, err
	}
	return w[0], nil
}
