package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch"
)

// tiny is a small event, and tinyObject its object.
func tiny(kind, name, version string) string {
	return `{"type":"` + kind + `","object":` + tinyObject(name, version) + `}`
}

func tinyObject(name, version string) string {
	return `{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`
}

// putText is put for a spec in JSON, which is written as it is.
func (e *env) putText(name, spec string) listwatch.Version {
	e.Helper()
	v, err := e.tryPutText(name, spec)
	if err != nil {
		e.Fatalf("put %s: %v", name, err)
	}
	return v
}

func (e *env) tryPutText(name, spec string) (listwatch.Version, error) {
	e.use(Writes)
	key := keyOf(name)
	body := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"spec":%s}`, key.Name, key.Namespace, spec)
	v, err := e.store.Put(context.Background(), key, []byte(body))
	if err != nil {
		return 0, err
	}
	return e.wrote(write{v, name, map[string]string{}}), nil
}

// spread is a spec with line breaks wherever JSON has them, raw and escaped.
const spread = "{\n\t\"text\": \"a\\nb\\r\\nc\",\r\n  \"list\": [\n1,\r2\n],\n\"key\\n\": {\n}\n}"

func ndjsonLines(e *env) {
	before := e.put("before")
	e.putText("a", spread)
	e.put("b")
	e.delete("a")
	a := e.watch(from(before))
	a.accepted()
	for _, want := range []string{"ADDED a", "ADDED b", "DELETED a"} {
		text, err := a.body.ReadBytes('\n')
		if err != nil {
			e.Fatalf("got %q, %v; want the line of %s", text, err, want)
		}
		if got := lineOf(text); got != want || text[0] != '{' || bytes.ContainsRune(text, '\r') {
			e.Fatalf("got the line %q, want %s as one JSON object and a newline", text, want)
		}
	}
}

// lineOf is line for an event in JSON; anything else is shown as it is.
func lineOf(event []byte) string {
	var w struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(event, &w); err != nil {
		return fmt.Sprintf("%q (%v)", event, err)
	}
	return w.Type + " " + w.Object.Metadata.Name
}

func jsonStreamDecoder(e *env) {
	a, b := tiny("ADDED", "a", "5"), tiny("DELETED", "b", "6")
	spaced := strings.NewReplacer(":", " :\n", ",", "\t,\r\n ", "{", "{ ", "}", "\n}").Replace
	for what, stream := range map[string][]string{
		"no newline":              {a, b},
		"two in one piece":        {a + b},
		"two lines in one piece":  {a + "\n" + b + "\n"},
		"space before and behind": {" \r\n\t" + a + " \n\n ", "\n", b},
		"space within":            {spaced(a), spaced(b) + "\n"},
		"events in pieces":        {a[:20], a[20:] + b[:1], b[1:50], b[50:]},
	} {
		s := e.hand(jsonType, pieces(stream...), ends).dial("")
		for _, want := range []string{"ADDED a", "DELETED b"} {
			if got := line(s.next()); got != want {
				e.Fatalf("%s: got %s, want %s", what, got, want)
			}
		}
		s.wantEnd()
	}
}

func fieldOrderFree(e *env) {
	o := tinyObject("a", "5")
	for _, event := range []string{
		`{"object":` + o + `,"type":"ADDED"}`,
		`{"x":[{"type":"DELETED","object":{}}],"type":"ADDED","y":null,"object":` + o + `,"z":{"type":"ERROR"}}`,
		`{"object":{"type":"DELETED","object":{},` + o[1:] + `,"kind":"x","type":"ADDED"}`,
	} {
		s := e.hand(jsonType, pieces(event), ends).dial("")
		s.want("ADDED a")
		s.wantEnd()
	}
}

// inPieces returns e with connections whose reads bring at most as many bytes as next says, given how many came before.
func (e *env) inPieces(next func(read int) int, saw io.Writer) *env {
	s := *e.Instance
	dial := s.Network.Dial
	s.Network.Dial = wrapDial(dial, func(c *piecewise) { c.next, c.saw = next, saw })
	return e.at(&site{&s, e.newClient(&s, e.way)})
}

// tinyEvents are for reading at every split point; they have letters of two, three and four bytes.
func tinyEvents() []listwatch.Event {
	var events []listwatch.Event
	for i, letter := range []string{"é", "€", "𝄞"} {
		v := listwatch.Version(5 + i)
		data := fmt.Sprintf(`{"metadata":{"name":"%c","resourceVersion":"%d"},"n":-12.5e7,"x":"%s"}`, 'a'+i, v, letter)
		events = append(events, listwatch.Event{Type: listwatch.Added, Version: v, Object: &listwatch.Object{Version: v, Data: []byte(data)}})
	}
	return events
}

func byteDrip(e *env) {
	events := tinyEvents()
	played := e.at(e.open(e.sends(events...)))
	watch := func(what string, next func(int) int) []byte {
		var seen bytes.Buffer
		s := played.inPieces(next, &seen).dial("")
		for _, want := range events {
			if got := s.next().Object.Data; !bytes.Equal(got, want.Object.Data) {
				e.Fatalf("%s: got %s, want %s", what, got, want.Object.Data)
			}
		}
		s.wantEnd()
		s.Close()
		return seen.Bytes()
	}
	all := watch("one byte a read", func(int) int { return 1 })
	const overhead = 24 // of what frames an event, at least
	begin := max(0, bytes.Index(all, []byte(`{"type"`))-overhead)
	for split := begin; split < len(all); split++ {
		watch(fmt.Sprintf("split at byte %d of the connection", split), func(read int) int {
			if read < split {
				return split - read
			}
			return len(all)
		})
	}
}

func coalesced(e *env) {
	const events = 1000
	before := e.put("before")
	for i := range events {
		e.put(fmt.Sprintf("n-%d", i%10))
	}
	const segment = 64 << 10 // more than that is never in one; the events have more
	held := &holding{enough: segment}
	s := *e.Instance
	if !e.secure() {
		s.Network.Dial = wrapDial(s.Network.Dial, func(c *piecewise) { c.held = held })
	}
	w := e.at(&site{&s, e.newClient(&s, e.way)}).dial(from(before))
	e.mu.Lock()
	want := e.history[1:]
	e.mu.Unlock()
	for i, want := range want {
		if got := w.next(); got.Version != want.version || got.Object.Key.Name != want.name {
			e.Fatalf("event %d is %s at %d, want %s at %d", i, line(got), got.Version, want.name, want.version)
		}
	}
}

func chunkBoundariesFree(e *env) {
	const text = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"é€𝄞","n":-12345.678e90}}`
	var chunks []string
	for i := 1; i < len(text); i++ {
		chunks = append(chunks, text[:i], text[i:])
	}
	chunks = append(chunks, strings.Split(text, "")...) // runes
	for i := range len(text) {
		chunks = append(chunks, text[i:i+1])
	}
	s := e.hand(jsonType, pieces(chunks...), ends).dial("")
	object := text[strings.Index(text, `{"metadata`) : len(text)-1]
	for i := range len(text) + 1 {
		if got := string(s.next().Object.Data); got != object {
			e.Fatalf("event %d: got %s, want %s", i, got, object)
		}
	}
	s.wantEnd()
}

func chunkExtTrailers(e *env) {
	a, b := tiny("ADDED", "a", "5"), tiny("ADDED", "b", "6")
	s := e.hand(jsonType, raws(
		fmt.Sprintf("%x;signature=0123;flag\r\n%s\r\n", len(a), a),
		fmt.Sprintf("%04X;quoted=\"a;b\"\r\n%s\r\n", len(b), b),
		"0;last=yes\r\nX-Checksum: 0123\r\nX-More: a\r\n\r\n",
	)).dial("")
	s.want("ADDED a", "ADDED b")
	s.wantEnd()
}
