package framing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

var sseOnly = []framing.Framer{framing.SSE{}}

func useSSE(r *client.Remote) { r.Framings = sseOnly }

// An sseEvent is a received server-sent event. It maps the name of each field to its values, in
// order.
type sseEvent map[string][]string

// readSSEEvent returns the next event with data. It skips events without data.
func readSSEEvent(a *harness.Response) sseEvent {
	a.Helper()
	b := sseEvent{}
	for {
		text, err := a.Body.ReadString('\n')
		if err != nil {
			a.Fatalf("got %q, %v; want a line", text, err)
		}
		text = strings.TrimSuffix(text, "\n")
		name, value, ok := strings.Cut(text, ": ")
		switch {
		case text == "" && b["data"] != nil:
			return b
		case text == "":
			b = sseEvent{}
		case text[0] == ':':
		case !ok || !strings.Contains(" id event data retry ", " "+name+" ") || strings.Contains(value, "\r"):
			a.Fatalf("got the line %q, want an id, event, data or retry field, or a comment", text)
		default:
			b[name] = append(b[name], value)
		}
	}
}

// check returns an error unless s is the event that want describes, such as "ADDED a", at version
// v.
func (s sseEvent) check(want string, v listwatch.Version) error {
	event := strings.Join(s["data"], "\n")
	kind, _, _ := strings.Cut(want, " ")
	switch {
	case harness.EventLineFromJSON([]byte(event)) != want:
		return fmt.Errorf("the data is %q, want the event %s", event, want)
	case len(s["event"]) != 1 || s["event"][0] != kind:
		return fmt.Errorf("the event fields are %q, want only %s", s["event"], kind)
	case len(s["id"]) != 1 || s["id"][0] != v.String():
		return fmt.Errorf("the id fields are %q, want only %d", s["id"], v)
	}
	return nil
}

func sseFields(e *harness.Env) {
	before := e.Put("before")
	a, b := e.Put("a"), e.Put("b")
	deleted := e.Delete("a")
	raw, s := e.WatchRawIn(harness.SSEMediaType, harness.From(before)), e.DialIn(framing.SSE{}, harness.From(before))
	for _, want := range []struct {
		line string
		v    listwatch.Version
	}{{"ADDED a", a}, {"ADDED b", b}, {"DELETED a", deleted}} {
		if err := readSSEEvent(raw).check(want.line, want.v); err != nil {
			e.Error(err)
		}
		w, err := s.Receive()
		if err != nil || w.Version != want.v ||
			harness.EventLineFromJSON([]byte(`{"type":"`+w.Type+`","object":`+string(w.Object)+`}`)) != want.line {
			e.Fatalf("got %s %s at version %d, error %v; want %s at version %d", w.Type, w.Object, w.Version, err,
				want.line, want.v)
		}
		if p, ok := s.Receiver.(framing.Positioner); ok && p.LastEventID() != want.v.String() {
			e.Errorf("the last event ID is %q after %s, want %d", p.LastEventID(), want.line, want.v)
		}
	}
}

func sseNewlineInData(e *harness.Env) {
	before := e.Put("before")
	v := e.PutJSON("a", multilineSpec)
	b := readSSEEvent(e.WatchRawIn(harness.SSEMediaType, harness.From(before)))
	if err := b.check("ADDED a", v); err != nil {
		e.Fatal(err)
	}
	var got struct{ Object json.RawMessage }
	if err := json.Unmarshal([]byte(strings.Join(b["data"], "\n")), &got); err != nil {
		e.Fatalf("got %q: %v", b["data"], err)
	}
	if text := harness.DecodeJSON(harness.SpecOf(got.Object)["text"]); text != "a\nb\r\nc" {
		e.Errorf("got the text %q, want the text as written", text)
	}
}

func sseContentType(e *harness.Env) {
	h := e.WatchRawIn(harness.SSEMediaType, "").Headers
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || kind != harness.SSEMediaType ||
		charset != "" && !strings.EqualFold(charset, "utf-8") {
		e.Errorf("got Content-Type %q, want %s", h["Content-Type"], harness.SSEMediaType)
	}
	if got := strings.Join(h.Values("Cache-Control"), ","); !strings.Contains(got, "no-cache") {
		e.Errorf("got Cache-Control %q, want no-cache", got)
	}
	if !e.Supports(harness.InProcess) {
		return
	}
	event := "data: " + harness.EventJSON("ADDED", "a", "5") + "\n\n"
	for _, bogus := range []string{
		"", "text/plain", "text/event-streams", "text/x-event-stream", "event-stream", "x bogus",
		"text/event-stream;charset=windows-1251",
	} {
		_, err := e.StartScriptOnAnyTarget(bogus, harness.SendPieces(event), harness.EndCleanly).TryDial("",
			transport.Request{Framings: sseOnly})
		if !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("Content-Type %q: got %v, want an error of code Unsupported", bogus, err)
		}
	}
	for _, good := range []string{
		harness.SSEMediaType, "Text/Event-Stream", "text/event-stream;charset=UTF-8", "text/event-stream ; x=y",
	} {
		e.StartScriptOnAnyTarget(good, harness.SendPieces(event), harness.EndCleanly).DialIn(framing.SSE{},
			"").Want("ADDED a")
	}
}

// An sseVector is a stream of server-sent events, the names of the objects that a client must read
// from it, and the last event ID at its end.
type sseVector struct{ name, stream, events, lastID string }

func sseVectors() []sseVector {
	a, b := harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "b", "6")
	data, both := "data: "+a+"\n", "data: "+a+"\n\ndata: "+b+"\n\n"
	return []sseVector{
		{"lines end with LF", both, "a b", ""},
		{"lines end with CR", strings.ReplaceAll(both, "\n", "\r"), "a b", ""},
		{"lines end with CRLF", strings.ReplaceAll(both, "\n", "\r\n"), "a b", ""},
		{"lines end with LF, CR and CRLF", "id:1\rdata:" + a + "\r\n\ndata:" + b + "\n\r", "a b", "1"},
		{"one BOM is ignored", "\uFEFF" + both, "a b", ""},
		{"a second BOM is the name of an unknown field", "\uFEFF\uFEFF" + both, "b", ""},
		{"comments are ignored", ":\n: data: x\n" + data + ":id: 9\n\n:\n\n", "a", ""},
		{"unknown fields are ignored", "what: x\nData: x\n data: x\n" + data + "more\n\n", "a", ""},
		{"the space after the colon is not part of the value", "data:" + a + "\nid:7\n\n", "a", "7"},
		{"only one space after the colon is removed", data + "id:  7\n\n", "a", " 7"},
		{
			"several data lines form one text",
			"data: {\"type\":\"ADDED\",\ndata: \"object\":\ndata:" + harness.ObjectJSON("a", "5") + "\ndata: }\n\n",
			"a", "",
		},
		{"a data line without a colon is an empty line", "data\n" + data + "data\n\n", "a", ""},
		{"blank lines dispatch nothing", "\n\n\n" + data + "\n\n\n\n", "a", ""},
		{"an event without data is dropped", "event: ADDED\n\n" + data + "\n", "a", ""},
		{"an id applies to later events", "id: 5\n" + data + "\n:\n\ndata: " + b + "\n\n", "a b", "5"},
		{"an id without data is kept", "id: 8\n\n", "", "8"},
		{"an empty id resets the last event ID", "id: 5\n" + data + "\nid\ndata: " + b + "\n\n", "a b", ""},
		{"the last of several ids wins", "id: 5\nid: 6\n" + data + "\n", "a", "6"},
		{"an id with NUL is ignored", "id: 5\n" + data + "\nid: 6\x00\ndata: " + b + "\n\n", "a b", "5"},
		{"retry is not an event", "retry: 1000\n\nretry: x\n" + data + "\n", "a", ""},
		{"data without a blank line is dropped", "id: 5\n" + data + "\ndata: " + b + "\n", "a", "5"},
		{"data in an incomplete line is dropped", data + "\ndata: " + b, "a", ""},
	}
}

func sseParseVectors(e *harness.Env) {
	for _, v := range sseVectors() {
		for _, payloads := range [][]string{{v.stream}, splitBytes(v.stream)} {
			s := e.StartScript(harness.SSEMediaType, harness.SendPieces(payloads...),
				harness.EndCleanly).DialIn(framing.SSE{}, "")
			var got []string
			for {
				w, err := s.Receive()
				if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					e.Errorf("%s: %v", v.name, err)
				}
				if err != nil {
					break
				}
				_, name, _ := strings.Cut(harness.EventLineFromJSON([]byte(`{"object":`+string(w.Object)+`}`)), " ")
				got = append(got, name)
			}
			if got := strings.Join(got, " "); got != v.events {
				e.Errorf("%s: %q in %d pieces: got events %q, want %q", v.name, v.stream, len(payloads), got, v.events)
			}
			if p, ok := s.Receiver.(framing.Positioner); ok && p.LastEventID() != v.lastID {
				e.Errorf("%s: %q: the last event ID is %q, want %q", v.name, v.stream, p.LastEventID(), v.lastID)
			}
		}
	}
}

func splitBytes(s string) []string {
	var all []string
	for i := range len(s) {
		all = append(all, s[i:i+1])
	}
	return all
}
