package framing

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

// Conformance case framing/ndjson-lines.
func TestJSONEventsAreLines(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1}`:                 "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n",
		"{\n\t\"a\" : [1,\r\n2]}": "{\"type\":\"ADDED\",\"object\":{\"a\":[1,2]}}\n",
	} {
		got, err := JSON{}.AppendEvent(nil, WatchEvent{Type: "ADDED", Object: []byte(object)})
		if err != nil || string(got) != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
		message, err := JSON{}.AppendMessage(nil, WatchEvent{Type: "ADDED", Object: []byte(object)})
		if err != nil || string(message)+"\n" != want {
			t.Errorf("got message %q and %v, want %q without its newline", message, err, want)
		}
	}
	given := []byte("{\n}")
	if _, err := (JSON{}).AppendEvent(nil, WatchEvent{Type: "ADDED", Object: given}); err != nil ||
		string(given) != "{\n}" {
		t.Errorf("%v, and the object became %q", err, given)
	}
	if _, err := (JSON{}).AppendEvent(nil, WatchEvent{Type: "ADDED", Object: []byte("{\n")}); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}

// Conformance case framing/json-stream-decoder.
func TestJSONDecoderUsesBrackets(t *testing.T) {
	const a, b = `{"type":"ADDED","object":{"s":"}{\\\""}}`, `{"type":"DELETED","object":{"n":[ 1 , 2 ]}}`
	for _, stream := range []string{
		a + b, a + "\n" + b, a + "\r\n\t  " + b, "\n\n " + a + " " + b + "\n\n",
		a + b + " ",
	} {
		got, err := decodeAll(JSON{}.NewDecoder(strings.NewReader(stream), 0))
		if err != io.EOF || len(got) != 2 || string(got[0].Object) != `{"s":"}{\\\""}` ||
			string(got[1].Object) != `{"n":[1,2]}` {
			t.Errorf("%q: got %v and %v", stream, got, err)
		}
	}
	for _, stream := range []string{a + ",", "[" + a, a + "x", "HTTP/1.1 400", "\ufeff" + a, a + "}"} {
		if _, err := decodeAll(JSON{}.NewDecoder(strings.NewReader(stream), 0)); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%q: got %v, want Corrupt", stream, err)
		}
	}
}

// The decoder must report invalid JSON without waiting for more input.
func TestJSONDecoderReportsErrorsAtOnce(t *testing.T) {
	d := JSON{}.NewDecoder(io.MultiReader(strings.NewReader(`{"type" "A`), unreadReader{t}), 0)
	if _, err := d.Decode(); !errors.Is(err, listwatch.Corrupt) || !strings.Contains(err.Error(), "byte 9") {
		t.Errorf("got %v, want Corrupt with byte 9", err)
	}
}

// An unreadReader fails the test if it is read.
type unreadReader struct{ t *testing.T }

func (r unreadReader) Read([]byte) (int, error) {
	r.t.Error("the decoder reads more")
	return 0, io.EOF
}

func TestMessageHasExactlyOneEvent(t *testing.T) {
	text, err := JSON{}.AppendMessage(nil, sampleEvents()[1])
	if err != nil {
		t.Fatal(err)
	}
	item, err := CBORSeq{}.AppendMessage(nil, sampleEvents()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (JSON{}).DecodeMessage(append(bytes.Clone(text), " \r\n"...)); err != nil {
		t.Errorf("space after the event: %v", err)
	}
	for name, decode := range map[string]func() error{
		"two texts": func() error { _, err := JSON{}.DecodeMessage(append(bytes.Clone(text), text...)); return err },
		"two items": func() error {
			_,
				err := CBORSeq{}.DecodeMessage(append(bytes.Clone(item), item...))
			return err
		},
		"rest":       func() error { _, err := CBORSeq{}.DecodeMessage(append(bytes.Clone(item), '\n')); return err },
		"empty text": func() error { _, err := JSON{}.DecodeMessage(nil); return err },
		"empty item": func() error { _, err := CBORSeq{}.DecodeMessage([]byte{}); return err },
		"space":      func() error { _, err := JSON{}.DecodeMessage([]byte("\n")); return err },
	} {
		if err := decode(); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s: got %v, want Corrupt", name, err)
		}
	}
	for cut := range text {
		if _, err := (JSON{}).DecodeMessage(text[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) ||
			!errors.Is(err, listwatch.Corrupt) {
			t.Fatalf("text truncated at %d: got %v, want Corrupt that wraps ErrUnexpectedEOF", cut, err)
		}
	}
	for cut := range item {
		if _, err := (CBORSeq{}).DecodeMessage(item[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) ||
			!errors.Is(err, listwatch.Corrupt) {
			t.Fatalf("item truncated at %d: got %v, want Corrupt that wraps ErrUnexpectedEOF", cut, err)
		}
	}
}

// Conformance cases framing/len-prefix, len-prefix-zero and len-prefix-huge.
func TestLengthPrefixedEvents(t *testing.T) {
	const body = `{"type":"ADDED","object":{}}`
	got, err := LengthPrefixed{}.AppendEvent([]byte("x"), WatchEvent{Type: "ADDED", Object: []byte("{}")})
	if err != nil || string(got) != "x\x00\x00\x00\x1c"+body {
		t.Errorf("got %q and %v", got, err)
	}
	for stream, want := range map[string]string{
		"\x00\x00\x00\x00" + string(got[1:]): "length 0", "\x00\x00\x00\x00": "length 0",
		"\xff\xff\xff\xff{":       "16777216 bytes",
		"\x00\x00\x00\x1b" + body: "incomplete JSON", "\x00\x00\x00\x1d" + body + "x": "after top-level value",
		"\x00\x00\x00\x01\n": "incomplete JSON",
	} {
		if _, err := (LengthPrefixed{}).NewDecoder(strings.NewReader(stream), 0).Decode(); !errors.Is(err,
			listwatch.Corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want Corrupt with %q", stream, err, want)
		}
	}
	if e, err := (LengthPrefixed{}).NewDecoder(strings.NewReader("\x00\x00\x00\x1e\n"+body+" "),
		0).Decode(); err != nil || string(e.Object) != "{}" {
		t.Errorf("space around the JSON: got %v and %v", e, err)
	}
}

// Conformance case framing/json-seq.
func TestJSONSeqElements(t *testing.T) {
	const body = `{"type":"ADDED","object":{}}`
	got, err := JSONSeq{}.AppendEvent(nil, WatchEvent{Type: "ADDED", Object: []byte("{}")})
	if err != nil || string(got) != "\x1e"+body+"\n" {
		t.Errorf("got %q and %v", got, err)
	}
	for stream, want := range map[string]struct {
		n   int
		err string // empty for a clean end
	}{
		"\x1e" + body + "\n\x1e" + body + "\n": {2, ""},
		// The closing bracket ends the object, so the LF may be missing.
		"\x1e" + body + "\x1e" + body:                      {2, ""},
		"\x1e\x1e\x1e" + body + "\n":                       {1, ""}, // RFC 7464 2.1: several RS
		"\n\x1e " + body + " \r\n":                         {1, ""},
		"\x1e" + body[:10] + "\x1e" + body + "\n":          {0, "incomplete"},
		"\x1e" + body + "\n\x1e" + body[:27] + "\n\x1e":    {1, "incomplete"},
		"\x1e\n\x1e" + body + "\n":                         {0, "incomplete"},
		"\x1e" + body + "\n\x1e" + body[:20]:               {1, "unexpected EOF"},
		"\x1e" + body + "\n\x1e":                           {1, "unexpected EOF"},
		body + "\n":                                        {0, "must be RS"},
		"\x1e" + body + "\n" + body + "\n":                 {1, "must be RS"},
		"\x1e" + body + "x\n":                              {1, "must be RS"},
		"\x1e{\"type\":\"A\x1eDDED\",\"object\":{}}\n\x1e": {0, "incomplete"},
	} {
		got, err := decodeAll(JSONSeq{}.NewDecoder(strings.NewReader(stream), 0))
		if len(got) != want.n || (want.err == "") != (err == io.EOF) || !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: got %d events and %v, want %d and %q", stream, len(got), err, want.n, want.err)
		}
	}
}

// A large event must not leave its buffer with the decoder, whatever space the event contains.
func TestLargeEventsReleaseTheirBuffer(t *testing.T) {
	for _, space := range []string{"", " "} {
		large := `{"type":"ADDED",` + space + `"object":{"a":"` + strings.Repeat("x", 2*maxKeptBuffer) + `"}}`
		r := &jsonReader{}
		in := newInput(strings.NewReader(large), 0)
		if _, err := r.readEvent(&in); err != nil {
			t.Fatal(err)
		}
		if n := cap(r.body.decoder.UnreadBuffer()); n > maxKeptBuffer {
			t.Errorf("with space %q: the decoder keeps %d bytes, want at most %d", space, n, maxKeptBuffer)
		}
	}
}
