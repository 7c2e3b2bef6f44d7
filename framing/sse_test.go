package framing

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

const (
	sseBody  = `{"type":"ADDED","object":{"a":1}}`
	sseData  = "data: " + sseBody
	sseEvent = sseData + "\n\n"
)

// An error with code 410 resets the ID, because a browser that resumed from the same ID would
// receive 410 again and again.
func TestSSEExpiryResetsTheLastEventID(t *testing.T) {
	for code, want := range map[string]string{"410": "", "503": "7"} {
		stream := []byte("id: 7\n\n")
		stream, err := SSE{}.AppendEvent(stream, WatchEvent{Type: TypeError, Object: []byte(`{"code":` + code + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		d := SSE{}.NewDecoder(bytes.NewReader(stream), 0).(*sseDecoder)
		if e, err := d.Decode(); e.Type != TypeError || err != nil || d.LastEventID() != want {
			t.Errorf("code %s: got %s, %v and last ID %q, want ID %q", code, e.Type, err, d.LastEventID(), want)
		}
	}
}

// Conformance case framing/sse-fields.
func TestSSEFields(t *testing.T) {
	for _, c := range []struct {
		e    WatchEvent
		want string
	}{
		{WatchEvent{Type: "ADDED", Object: []byte(`{"a":1}`), Version: 7}, "id: 7\nevent: ADDED\n" + sseEvent},
		{WatchEvent{Type: "ADDED", Object: []byte(`{"a":1}`)}, "event: ADDED\n" + sseEvent},
		// Conformance case framing/sse-newline-in-data.
		{
			WatchEvent{Type: "ADDED", Object: []byte("{\n\"a\":\r\n1\r}")},
			"event: ADDED\ndata: {\"type\":\"ADDED\",\"object\":{\ndata: \"a\":\ndata: 1\ndata: }}\n\n",
		},
	} {
		got, err := SSE{}.AppendEvent([]byte("before"), c.e)
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("got %q and %v, want %q", got, err, c.want)
		}
		back, err := SSE{}.NewDecoder(strings.NewReader(c.want), 0).Decode()
		if err != nil || back.Version != c.e.Version || string(back.Object) != `{"a":1}` {
			t.Errorf("%q: got %v and %v", c.want, back, err)
		}
	}
	if _, err := (SSE{}).AppendEvent(nil, WatchEvent{Type: "A\nid: 5", Object: []byte("{}")}); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("got %v, want Invalid: a type must not contain another field", err)
	}
}

func TestSSEHeartbeatsUpdateTheLastEventID(t *testing.T) {
	if got := string(SSE{}.AppendOpening(nil)); got != "retry: 1000\n\n" {
		t.Errorf("got opening %q", got)
	}
	stream := SSE{}.AppendOpening(nil)
	stream = SSE{}.AppendHeartbeat(stream, 0)
	stream = SSE{}.AppendHeartbeat(stream, 41)
	stream, err := SSE{}.AppendEvent(stream, WatchEvent{Type: "ADDED", Object: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	stream = SSE{}.AppendHeartbeat(stream, 42)
	d := SSE{}.NewDecoder(strings.NewReader(string(stream)), 0).(*sseDecoder)
	e, err := d.Decode()
	if err != nil || e.Version != 0 || d.LastEventID() != "41" {
		t.Errorf("got version %d, last ID %q and %v, want 0: the event itself has no id", e.Version,
			d.LastEventID(), err)
	}
	if _, err := d.Decode(); err != io.EOF || d.LastEventID() != "42" {
		t.Errorf("got last ID %q and %v, want 42 and EOF", d.LastEventID(), err)
	}
}

func TestSSEHeartbeatsDoNotCountForTheLimit(t *testing.T) {
	stream := strings.Repeat(":\nid: 1\n\n: x\nunknown: y\n", 1000) + sseEvent
	if _, err := (SSE{}).NewDecoder(strings.NewReader(stream), 64).Decode(); err != nil {
		t.Error(err)
	}
}

// This is the conformance case framing/sse-parse-vectors. It includes the format tests of
// web-platform-tests/eventsource.
func TestSSEDecoderParsesLikeBrowsers(t *testing.T) {
	const none = "none"
	for name, c := range map[string]struct {
		stream string
		id     string // the last event ID after the first event; none if no event is decoded
		err    error  // the error at the end of the stream
	}{
		"LF":             {sseEvent, "", io.EOF},
		"CR":             {sseData + "\r\r", "", io.EOF},
		"CRLF":           {sseData + "\r\n\r\n", "", io.EOF},
		"mixed ends":     {"id: 1\r" + sseData + "\n\r\n", "1", io.EOF},
		"CR then LF":     {sseData + "\r\n\n", "", io.EOF},
		"BOM":            {"\uFEFF" + sseEvent, "", io.EOF},
		"two BOMs":       {"\uFEFF\uFEFF" + sseEvent, none, io.EOF},
		"comments":       {":\n: x\n:data: no\n" + sseData + "\n:\n\n", "", io.EOF},
		"unknown fields": {"DATA: x\ndat: x\n data: x\nretry: 5\nfoo\n" + sseEvent, "", io.EOF},
		"no space":       {"data:" + sseBody + "\n\n", "", io.EOF},
		// one space belongs to the line format, the other to the JSON
		"space kept":           {"data:  " + sseBody + "\n\n", "", io.EOF},
		"no final blank line":  {sseData + "\n", none, io.ErrUnexpectedEOF},
		"no final line end":    {sseData, none, io.ErrUnexpectedEOF},
		"cut after an event":   {sseEvent + "id: 5\n", "", io.ErrUnexpectedEOF},
		"cut within a comment": {sseEvent + ": hea", "", io.ErrUnexpectedEOF},
		"comment at the end":   {sseEvent + ": heartbeat\n", "", io.EOF},
		"event without data":   {"event: ADDED\nid: 3\n\n" + sseEvent, "3", io.EOF},
		"id":                   {"id: 7\n" + sseEvent, "7", io.EOF},
		"id with NUL":          {"id: 7\n\nid: 8\x009\n" + sseEvent, "7", io.EOF},
		"id reset":             {"id: 7\n\nid\n" + sseEvent, "", io.EOF},
		"id kept":              {"id: 7\n\n" + sseEvent, "7", io.EOF},
		"id not a version":     {"id: x…\n" + sseEvent, "x…", io.EOF},
		"several data lines": {
			"data: {\"type\":\"ADDED\",\ndata:\ndata\ndata: \"object\":{\"a\":1}}\n\n", "",
			io.EOF,
		},
		"leading blank lines": {"\n\r\n\r\r\n" + sseEvent, "", io.EOF},
		"empty":               {"", none, io.EOF},
		"only a BOM":          {"\uFEFF\n\n", none, io.EOF},
		"other event line":    {"event: message\n" + sseEvent, "", io.EOF},
		"colon in the data line": {
			"data:" + strings.Replace(sseBody, `"a":1`, `"a":1,"u":"x:y: z"`, 1) + "\n\n", "",
			io.EOF,
		},
	} {
		d := SSE{}.NewDecoder(strings.NewReader(c.stream), 0).(*sseDecoder)
		e, err := d.Decode()
		if c.id != none {
			if err != nil || e.Type != "ADDED" || !strings.HasPrefix(string(e.Object), `{"a":1`) ||
				d.LastEventID() != c.id {
				t.Errorf("%s: got %s %s, last ID %q and %v, want ID %q", name, e.Type, e.Object, d.LastEventID(),
					err, c.id)
				continue
			}
			_, err = d.Decode()
		}
		if name == "two BOMs" { // the second BOM makes the line an unknown field
			c.err = io.EOF
		}
		if c.err == io.EOF && err != io.EOF || !errors.Is(err, c.err) {
			t.Errorf("%s: the stream ends with %v, want %v", name, err, c.err)
		}
	}
}

func TestSSERejectsInvalidData(t *testing.T) {
	for _, stream := range []string{
		"data\n\n", "data: \n\n", "data: hello\n\n", sseData + "\n" + sseEvent,
		"data: {\n\n",
	} {
		_, err := SSE{}.NewDecoder(strings.NewReader(stream), 0).Decode()
		if !errors.Is(err, listwatch.Corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: got %v, want Corrupt", stream, err)
		}
	}
}
