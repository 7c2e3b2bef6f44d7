package framing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// writeChanges writes to the collection. It returns the version before the writes, and the
// events that a watch from that version must send.
func writeChanges(e *harness.Env) (before listwatch.Version, lines []string) {
	e.Helper()
	before = e.Put("before")
	e.PutJSON("a", multilineSpec)
	e.Put("b")
	e.Delete("a")
	return before, []string{"ADDED a", "ADDED b", "DELETED a"}
}

// lengthPrefixed returns text as one frame of the length-prefixed framing.
func lengthPrefixed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func lenPrefix(e *harness.Env) {
	f := framing.LengthPrefixed{}
	before, lines := writeChanges(e)
	a := e.WatchRawIn(f.MediaType(), harness.From(before))
	for _, want := range lines {
		length := binary.BigEndian.Uint32(a.ReadBytes(4))
		if length < 50 || length > 1<<16 {
			e.Fatalf("got a length of %d bytes, want the length of the event %s", length, want)
		}
		if text := a.ReadBytes(int(length)); harness.EventLineFromJSON(text) != want || text[len(text)-1] != '}' {
			e.Fatalf("got %q, want %s", text, want)
		}
	}
	e.DialIn(f, harness.From(before)).Want(lines...)
}

func lenPrefixZero(e *harness.Env) {
	f := framing.LengthPrefixed{}
	event := lengthPrefixed(harness.EventJSON("ADDED", "a", "5"))
	for name, stream := range map[string]string{
		"one empty frame":   lengthPrefixed("") + event,
		"many empty frames": strings.Repeat(lengthPrefixed(""), 1000) + event,
		"after an event":    event + lengthPrefixed("") + event,
	} {
		s := e.StartScript(f.MediaType(), harness.SendPieces(stream), harness.EndCleanly).DialIn(f, "")
		w, err := s.Receive()
		if err == nil && name == "after an event" {
			w, err = s.Receive()
		}
		skipped := err == nil && strings.Contains(string(w.Object), `"a"`)
		if !skipped && !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s: got %s, %v; want an error of code Corrupt, or the event after the empty frame", name,
				w.Object, err)
		}
	}
}

func lenPrefixHuge(e *harness.Env) {
	const limit, maxBytes = 1 << 20, 8 << 20
	f := framing.LengthPrefixed{}
	for _, length := range []uint32{limit + 1, 1 << 31, 1<<32 - 1} {
		truncated := string(binary.BigEndian.AppendUint32(nil, length)) + `{"type":`
		scripted := e.StartScript(f.MediaType(), harness.SendPieces(truncated), harness.StayOpen)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := scripted.DialRequest("", transport.Request{Framings: []framing.Framer{f}, Limit: limit})
		w, err := s.Receive()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("length %d: got %s, %v; want an error of code Corrupt", length, w.Object, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxBytes {
			e.Errorf("length %d: the client allocated %d bytes of memory", length, allocated)
		}
		s.Close()
	}
}

// separator precedes each element of a JSON text sequence (RFC 7464, section 2.2).
const separator = "\x1e"

func jsonSeq(e *harness.Env) {
	f := framing.JSONSeq{}
	before, lines := writeChanges(e)
	a := e.WatchRawIn(f.MediaType(), harness.From(before))
	for _, want := range lines {
		text, err := a.Body.ReadString('\n')
		if err != nil || !strings.HasPrefix(text, separator) || harness.EventLineFromJSON([]byte(text[1:])) != want {
			e.Fatalf("got %q, %v; want RS, %s, LF", text, err, want)
		}
	}
	e.DialIn(f, harness.From(before)).Want(lines...)
	if !e.Supports(harness.InProcess) {
		return
	}
	first, last := separator+harness.EventJSON("ADDED", "a", "5")+"\n", separator+harness.EventJSON("ADDED", "c", "7")+
		"\n"
	for _, cut := range []string{
		separator + halfEvent, separator + halfEvent + "\n", separator + `{"type":"ADDED"` + "\n",
	} {
		s := e.StartScriptOnAnyTarget(f.MediaType(), harness.SendPieces(first+cut+last), harness.EndCleanly).DialIn(f,
			"")
		s.Want("ADDED a")
		if w, err := s.Receive(); err == nil || err == io.EOF {
			e.Errorf("%q between two events: got %s, %v; want an error that reports the truncated event", cut, w.Object,
				err)
		}
	}
	s := e.StartScriptOnAnyTarget(f.MediaType(), harness.SendPieces(separator+first+separator+separator+last),
		harness.EndCleanly).DialIn(f, "")
	s.Want("ADDED a", "ADDED c")
	s.WantEnd()
}

func cborSeq(e *harness.Env) {
	f := framing.CBORSeq{}
	before, lines := writeChanges(e)
	a := e.WatchRawIn(f.MediaType(), harness.From(before))
	binary, text := e.DialIn(f, harness.From(before)), e.Dial(harness.From(before))
	for _, want := range lines {
		var item bytes.Buffer
		if first, err := copyItem(&item, a.Body); err != nil || first>>5 != 5 {
			e.Fatalf("got % x, %v; want a CBOR map", item.Bytes(), err)
		}
		w, err := f.DecodeMessage(item.Bytes())
		if got := harness.EventLineFromJSON([]byte(`{"type":"` + w.Type + `","object":` + string(w.Object) +
			`}`)); err != nil || got != want {
			e.Fatalf("got %s, %v; want %s", got, err, want)
		}
		got, plain := binary.Want(want)[0], text.Want(want)[0]
		if diff := cmp.Diff(harness.DecodeJSON(plain.Object.Data), harness.DecodeJSON(got.Object.Data)); diff != "" ||
			got.Version != plain.Version {
			e.Errorf("%s has version %d in CBOR and version %d in JSON (-JSON +CBOR):\n%s", want,
				got.Version, plain.Version, diff)
		}
	}
}

// copyItem copies one CBOR item (RFC 8949, section 3) and returns its first byte. It
// supports items of definite length only.
func copyItem(dst *bytes.Buffer, src io.Reader) (byte, error) {
	begin := dst.Len()
	if _, err := io.CopyN(dst, src, 1); err != nil {
		return 0, err
	}
	first := dst.Bytes()[begin]
	major, n := first>>5, uint64(first&31)
	if n >= 24 {
		if n > 27 {
			return first, fmt.Errorf("first byte %#02x: must start a CBOR item of definite length", first)
		}
		size := 1 << (n - 24)
		if _, err := io.CopyN(dst, src, int64(size)); err != nil {
			return first, err
		}
		n = 0
		for _, b := range dst.Bytes()[dst.Len()-size:] {
			n = n<<8 | uint64(b)
		}
	}
	switch major {
	case 2, 3:
		_, err := io.CopyN(dst, src, int64(n))
		return first, err
	case 4, 5, 6:
		items := map[byte]uint64{4: n, 5: 2 * n, 6: 1}[major]
		for range items {
			if _, err := copyItem(dst, src); err != nil {
				return first, err
			}
		}
	}
	return first, nil
}
