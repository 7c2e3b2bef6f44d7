package framing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// multilineSpec is a spec with raw line breaks between its JSON tokens and escaped ones in its
// strings.
const multilineSpec = "{\n\t\"text\": \"a\\nb\\r\\nc\",\r\n  \"list\": [\n1,\r2\n],\n\"key\\n\": {\n}\n}"

func ndjsonLines(e *harness.Env) {
	before := e.Put("before")
	e.PutJSON("a", multilineSpec)
	e.Put("b")
	e.Delete("a")
	a := e.WatchRaw(harness.From(before))
	a.WantAccepted()
	for _, want := range []string{"ADDED a", "ADDED b", "DELETED a"} {
		text, err := a.Body.ReadBytes('\n')
		if err != nil {
			e.Fatalf("got %q, %v; want a line with the event %s", text, err, want)
		}
		if got := harness.EventLineFromJSON(text); got != want || text[0] != '{' || bytes.ContainsRune(text, '\r') {
			e.Fatalf("got the line %q, want %s as one JSON object that a single newline follows", text, want)
		}
	}
}

func jsonStreamDecoder(e *harness.Env) {
	a, b := harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("DELETED", "b", "6")
	spaced := strings.NewReplacer(":", " :\n", ",", "\t,\r\n ", "{", "{ ", "}", "\n}").Replace
	for name, stream := range map[string][]string{
		"no newline":              {a, b},
		"two events in one piece": {a + b},
		"two lines in one piece":  {a + "\n" + b + "\n"},
		"space around events":     {" \r\n\t" + a + " \n\n ", "\n", b},
		"space inside events":     {spaced(a), spaced(b) + "\n"},
		"events in pieces":        {a[:20], a[20:] + b[:1], b[1:50], b[50:]},
	} {
		s := e.StartScript(harness.JSONMediaType, harness.SendPieces(stream...), harness.EndCleanly).Dial("")
		for _, want := range []string{"ADDED a", "DELETED b"} {
			if got := harness.EventLine(s.Next()); got != want {
				e.Fatalf("%s: got %s, want %s", name, got, want)
			}
		}
		s.WantEnd()
	}
}

func fieldOrderFree(e *harness.Env) {
	o := harness.ObjectJSON("a", "5")
	for _, event := range []string{
		`{"object":` + o + `,"type":"ADDED"}`,
		`{"x":[{"type":"DELETED","object":{}}],"type":"ADDED","y":null,"object":` + o + `,"z":{"type":"ERROR"}}`,
		`{"object":{"type":"DELETED","object":{},` + o[1:] + `,"x":"kind","type":"ADDED"}`,
	} {
		s := e.StartScript(harness.JSONMediaType, harness.SendEvents(event), harness.EndCleanly).Dial("")
		s.Want("ADDED a")
		s.WantEnd()
	}
}

// withReadSizes returns a copy of e with a client whose connections limit the size of each read to
// next(n), where n is the number of bytes read so far. The connections also copy all bytes that
// they read to tee.
func withReadSizes(e *harness.Env, next func(read int) int, tee io.Writer) *harness.Env {
	s := *e.Instance
	dial := s.Network.Dial
	s.Network.Dial = harness.WrapDial(dial, func(c *harness.SplitConn) {
		c.NextSize, c.Tee, c.Pause = next, tee, e.Either(0, time.Millisecond)
	})
	return e.WithRoute(&harness.Route{Instance: &s, Client: e.NewClient(&s, e.Variant)})
}

// tinyEvents returns small events, so that byteDrip can split them at every byte. They contain
// characters of two, three and four bytes.
func tinyEvents() []listwatch.Event {
	var events []listwatch.Event
	for i, letter := range []string{"é", "€", "𝄞"} {
		v := listwatch.Version(5 + i)
		object := harness.ObjectJSON(string(rune('a'+i)), v.String())
		data := fmt.Sprintf(`%s,"n":-12.5e7,"x":"%s"}`, strings.TrimSuffix(object, "}"), letter)
		events = append(events, listwatch.Event{
			Type: listwatch.Added, Version: v, Object: &listwatch.Object{Version: v, Data: []byte(data)},
		})
	}
	return events
}

// sameObject reports whether a client has received the object want. For a client in another
// process, it compares JSON values, because such a client may decode an object and encode it again.
// Other cases check that the bytes are preserved.
func sameObject(e *harness.Env, got, want []byte) bool {
	if !e.Target.OwnClock || bytes.Equal(got, want) {
		return bytes.Equal(got, want)
	}
	var a, b any
	return json.Unmarshal(got, &a) == nil && json.Unmarshal(want, &b) == nil && reflect.DeepEqual(a, b)
}

func byteDrip(e *harness.Env) {
	events := tinyEvents()
	scripted := e.WithRoute(e.Serve(e.SendThenEnd(events...)))
	watch := func(name string, next func(int) int) []byte {
		var seen bytes.Buffer
		s := withReadSizes(scripted, next, &seen).Dial("")
		for _, want := range events {
			if got := s.Next().Object.Data; !sameObject(e, got, want.Object.Data) {
				e.Fatalf("%s: got %s, want %s", name, got, want.Object.Data)
			}
		}
		s.WantEnd()
		s.Close()
		return seen.Bytes()
	}
	all := watch("one byte per read", func(int) int { return 1 })
	const overhead = 24 // chunk, DATA frame and message headers are shorter
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

func coalesced(e *harness.Env) {
	const events = 500
	before := e.Put("before")
	for i := range events {
		e.Put(fmt.Sprintf("n-%d", i%10))
	}
	// segment is the number of bytes that the connection holds back and then delivers together. No
	// TCP segment is longer, and all events together are longer.
	const segment = 64 << 10
	held := &harness.HeldBytes{Enough: segment}
	s := *e.Instance
	if !e.UsesTLS() {
		s.Network.Dial = harness.WrapDial(s.Network.Dial, func(c *harness.SplitConn) { c.Held = held })
	}
	w := e.WithRoute(&harness.Route{Instance: &s, Client: e.NewClient(&s, e.Variant)}).Dial(harness.From(before))
	e.Mu.Lock()
	want := e.History[1:]
	e.Mu.Unlock()
	for i, want := range want {
		if got := w.Next(); got.Version != want.Version || got.Object.Key.Name != want.Name {
			e.Fatalf("event %d is %s at version %d, want %s at version %d", i, harness.EventLine(got),
				got.Version, want.Name, want.Version)
		}
	}
}

func chunkBoundariesFree(e *harness.Env) {
	const text = `{"type":"ADDED","object":{"kind":"Thing","apiVersion":"v1",` +
		`"metadata":{"name":"a","resourceVersion":"5"},"text":"é€𝄞","n":-12345.678e90}}` + "\n"
	var chunks []string
	for i := 1; i < len(text); i++ {
		chunks = append(chunks, text[:i], text[i:])
	}
	chunks = append(chunks, strings.Split(text, "")...) // one character each
	for i := range len(text) {
		chunks = append(chunks, text[i:i+1])
	}
	s := e.StartScript(harness.JSONMediaType, harness.SendPieces(chunks...), harness.EndCleanly).Dial("")
	object := text[strings.Index(text, `{"kind`) : len(text)-len("}\n")]
	for i := range len(text) + 1 {
		if got := string(s.Next().Object.Data); !sameObject(e, []byte(got), []byte(object)) {
			e.Fatalf("event %d: got %s, want %s", i, got, object)
		}
	}
	s.WantEnd()
}

func chunkExtTrailers(e *harness.Env) {
	a, b := harness.EventJSON("ADDED", "a", "5")+"\n", harness.EventJSON("ADDED", "b", "6")+"\n"
	s := e.StartScript(harness.JSONMediaType, harness.SendBytes(
		fmt.Sprintf("%x;signature=0123;flag\r\n%s\r\n", len(a), a),
		fmt.Sprintf("%04X;quoted=\"a;b\"\r\n%s\r\n", len(b), b),
		"0;last=yes\r\nX-Checksum: 0123\r\nX-More: a\r\n\r\n",
	)).Dial("")
	s.Want("ADDED a", "ADDED b")
	s.WantEnd()
}
