package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

const sseType = "text/event-stream"

var sseOnly = []framing.Framer{framing.SSE{}}

func inSSE(r *client.Remote) { r.Framings = sseOnly }

// watchIn is watch in another framing. A server that is not ours need not have it.
func (e *env) watchIn(mediaType, query string) *answer {
	e.Helper()
	a := e.watch(query, "Accept", mediaType)
	if a.status == 406 && !e.can(InProcess) {
		e.Skipf("the server does not offer %s", mediaType)
	}
	a.accepted()
	if got := a.header.Get("Content-Type"); got != mediaType && mediaType != sseType {
		e.Errorf("got Content-Type %q, want %s", got, mediaType)
	}
	return a
}

// dialIn is dial in one framing.
func (e *env) dialIn(f framing.Framer, query string) *stream {
	e.Helper()
	return e.dialAs(query, transport.Request{Framings: []framing.Framer{f}})
}

func (e *env) tryDialIn(f framing.Framer, query string) (*stream, error) {
	return e.tryDial(query, transport.Request{Framings: []framing.Framer{f}})
}

// A block is one event of server-sent events as it came: the values of its fields, in order.
type block map[string][]string

// block reads the next block that has data.
func (a *answer) block() block {
	a.Helper()
	b := block{}
	for {
		text, err := a.body.ReadString('\n')
		if err != nil {
			a.Fatalf("got %q, %v; want a line", text, err)
		}
		text = strings.TrimSuffix(text, "\n")
		name, value, ok := strings.Cut(text, ": ")
		switch {
		case text == "" && b["data"] != nil:
			return b
		case text == "":
			b = block{}
		case text[0] == ':':
		case !ok || !strings.Contains(" id event data retry ", " "+name+" ") || strings.Contains(value, "\r"):
			a.Fatalf("got the line %q, want id, event, data, retry or a comment", text)
		default:
			b[name] = append(b[name], value)
		}
	}
}

// is holds b against an event of a version.
func (b block) is(want string, v listwatch.Version) error {
	event := strings.Join(b["data"], "\n")
	kind, _, _ := strings.Cut(want, " ")
	switch {
	case lineOf([]byte(event)) != want:
		return fmt.Errorf("the data is %q, want %s", event, want)
	case len(b["event"]) != 1 || b["event"][0] != kind:
		return fmt.Errorf("the event lines are %q, want %s", b["event"], kind)
	case len(b["id"]) != 1 || b["id"][0] != v.String():
		return fmt.Errorf("the id lines are %q, want %d", b["id"], v)
	}
	return nil
}

func sseFields(e *env) {
	before := e.put("before")
	a, b := e.put("a"), e.put("b")
	gone := e.delete("a")
	raw, s := e.watchIn(sseType, from(before)), e.dialIn(framing.SSE{}, from(before))
	for _, want := range []struct {
		line string
		v    listwatch.Version
	}{{"ADDED a", a}, {"ADDED b", b}, {"DELETED a", gone}} {
		if err := raw.block().is(want.line, want.v); err != nil {
			e.Error(err)
		}
		w, err := s.Receive()
		if err != nil || w.Version != want.v || lineOf([]byte(`{"type":"`+w.Type+`","object":`+string(w.Object)+`}`)) != want.line {
			e.Fatalf("got %+v, %v; want %s at %d", w, err, want.line, want.v)
		}
		if p, ok := s.Receiver.(framing.Positioner); ok && p.LastEventID() != want.v.String() {
			e.Errorf("the last event ID is %q after %s, want %d", p.LastEventID(), want.line, want.v)
		}
	}
}

func sseNewlineInData(e *env) {
	before := e.put("before")
	v := e.putText("a", spread)
	b := e.watchIn(sseType, from(before)).block()
	if err := b.is("ADDED a", v); err != nil {
		e.Fatal(err)
	}
	var got struct{ Object json.RawMessage }
	if err := json.Unmarshal([]byte(strings.Join(b["data"], "\n")), &got); err != nil {
		e.Fatalf("got %q: %v", b["data"], err)
	}
	if text := values(written(got.Object)["text"]); text != "a\nb\r\nc" {
		e.Errorf("got %q, want the text as it was written", text)
	}
}

func sseContentType(e *env) {
	h := e.watchIn(sseType, "").header
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || kind != sseType || charset != "" && !strings.EqualFold(charset, "utf-8") {
		e.Errorf("got Content-Type %q, want %s", h["Content-Type"], sseType)
	}
	if got := strings.Join(h.Values("Cache-Control"), ","); !strings.Contains(got, "no-cache") {
		e.Errorf("got Cache-Control %q, want no-cache", got)
	}
	if !e.can(InProcess) {
		return
	}
	event := "data: " + tiny("ADDED", "a", "5") + "\n\n"
	for _, bogus := range []string{"", "text/plain", "text/event-streams", "text/x-event-stream", "event-stream", "x bogus", "text/event-stream;charset=windows-1251"} {
		_, err := e.stage(bogus, pieces(event), ends).tryDial("", transport.Request{Framings: sseOnly})
		if !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("Content-Type %q: got %v, want an error of code Unsupported", bogus, err)
		}
	}
	for _, good := range []string{sseType, "Text/Event-Stream", "text/event-stream;charset=UTF-8", "text/event-stream ; x=y"} {
		e.stage(good, pieces(event), ends).dialIn(framing.SSE{}, "").want("ADDED a")
	}
}

// A vector is a stream of server-sent events and what is to be read in it.
type vector struct{ says, stream, events, last string }

func vectors() []vector {
	a, b := tiny("ADDED", "a", "5"), tiny("ADDED", "b", "6")
	data, both := "data: "+a+"\n", "data: "+a+"\n\ndata: "+b+"\n\n"
	return []vector{
		{"lines end with LF", both, "a b", ""},
		{"lines end with CR", strings.ReplaceAll(both, "\n", "\r"), "a b", ""},
		{"lines end with CRLF", strings.ReplaceAll(both, "\n", "\r\n"), "a b", ""},
		{"lines end in all ways", "id:1\rdata:" + a + "\r\n\ndata:" + b + "\n\r", "a b", "1"},
		{"one BOM is ignored", "\uFEFF" + both, "a b", ""},
		{"a second BOM is the name of an unknown field", "\uFEFF\uFEFF" + both, "b", ""},
		{"comments are ignored", ":\n: data: x\n" + data + ":id: 9\n\n:\n\n", "a", ""},
		{"unknown fields are ignored", "what: x\nData: x\n data: x\n" + data + "more\n\n", "a", ""},
		{"the space behind the colon is no part of the value", "data:" + a + "\nid:7\n\n", "a", "7"},
		{"only one space is taken away", data + "id:  7\n\n", "a", " 7"},
		{"several data lines are one text", "data: {\"type\":\"ADDED\",\ndata: \"object\":\ndata:" + tinyObject("a", "5") + "\ndata: }\n\n", "a", ""},
		{"a data line without a colon is an empty line", "data\n" + data + "data\n\n", "a", ""},
		{"blank lines dispatch nothing", "\n\n\n" + data + "\n\n\n\n", "a", ""},
		{"an event without data is none", "event: ADDED\n\n" + data + "\n", "a", ""},
		{"an id is kept", "id: 5\n" + data + "\n:\n\ndata: " + b + "\n\n", "a b", "5"},
		{"an id without data is kept", "id: 8\n\n", "", "8"},
		{"an empty id resets", "id: 5\n" + data + "\nid\ndata: " + b + "\n\n", "a b", ""},
		{"the last of several ids counts", "id: 5\nid: 6\n" + data + "\n", "a", "6"},
		{"an id with NUL is ignored", "id: 5\n" + data + "\nid: 6\x00\ndata: " + b + "\n\n", "a b", "5"},
		{"retry is no event", "retry: 1000\n\nretry: x\n" + data + "\n", "a", ""},
		{"data without a blank line is dropped", "id: 5\n" + data + "\ndata: " + b + "\n", "a", "5"},
		{"data in a line without an end is dropped", data + "\ndata: " + b, "a", ""},
	}
}

func sseParseVectors(e *env) {
	for _, v := range vectors() {
		for _, payloads := range [][]string{{v.stream}, bytewise(v.stream)} {
			s := e.hand(sseType, pieces(payloads...), ends).dialIn(framing.SSE{}, "")
			var got []string
			for {
				w, err := s.Receive()
				if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					e.Errorf("%s: %v", v.says, err)
				}
				if err != nil {
					break
				}
				_, name, _ := strings.Cut(lineOf([]byte(`{"object":`+string(w.Object)+`}`)), " ")
				got = append(got, name)
			}
			if got := strings.Join(got, " "); got != v.events {
				e.Errorf("%s: %q in %d pieces: got events %q, want %q", v.says, v.stream, len(payloads), got, v.events)
			}
			if p, ok := s.Receiver.(framing.Positioner); ok && p.LastEventID() != v.last {
				e.Errorf("%s: %q: the last event ID is %q, want %q", v.says, v.stream, p.LastEventID(), v.last)
			}
		}
	}
}

func bytewise(s string) []string {
	var all []string
	for i := range len(s) {
		all = append(all, s[i:i+1])
	}
	return all
}
