package cases

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// changes writes what a watch from the version that it returns shows as the lines it returns.
func (e *env) changes() (before listwatch.Version, lines []string) {
	e.Helper()
	before = e.put("before")
	e.putText("a", spread)
	e.put("b")
	e.delete("a")
	return before, []string{"ADDED a", "ADDED b", "DELETED a"}
}

// prefixed is text as the length-prefixed framing has it.
func prefixed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func lenPrefix(e *env) {
	f := framing.LengthPrefixed{}
	before, lines := e.changes()
	a := e.watchIn(f.MediaType(), from(before))
	for _, want := range lines {
		length := binary.BigEndian.Uint32(a.read(4))
		if length < 50 || length > 1<<16 {
			e.Fatalf("got a length of %d, want that of %s", length, want)
		}
		if text := a.read(int(length)); lineOf(text) != want || text[len(text)-1] != '}' {
			e.Fatalf("got %q, want %s", text, want)
		}
	}
	e.dialIn(f, from(before)).want(lines...)
}

func lenPrefixZero(e *env) {
	f := framing.LengthPrefixed{}
	event := prefixed(tiny("ADDED", "a", "5"))
	for what, stream := range map[string]string{
		"one": prefixed("") + event, "many": strings.Repeat(prefixed(""), 1000) + event, "behind an event": event + prefixed("") + event,
	} {
		s := e.hand(f.MediaType(), pieces(stream), ends).dialIn(f, "")
		w, err := s.Receive()
		if err == nil && what == "behind an event" {
			w, err = s.Receive()
		}
		skipped := err == nil && strings.Contains(string(w.Object), `"a"`)
		if !skipped && !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s: got %s, %v; want an error of code Corrupt, or the event behind", what, w.Object, err)
		}
	}
}

func lenPrefixHuge(e *env) {
	const limit, most = 1 << 20, 8 << 20
	f := framing.LengthPrefixed{}
	for _, length := range []uint32{limit + 1, 1 << 31, 1<<32 - 1} {
		promise := string(binary.BigEndian.AppendUint32(nil, length)) + `{"type":`
		played := e.hand(f.MediaType(), pieces(promise), stays)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := played.dialAs("", transport.Request{Framings: []framing.Framer{f}, Limit: limit})
		w, err := s.Receive()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("length %d: got %s, %v; want an error of code Corrupt, at once", length, w.Object, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			e.Errorf("length %d: the client took %d bytes of memory", length, took)
		}
		s.Close()
	}
}

// separator begins each element of a JSON text sequence (RFC 7464, section 2.2).
const separator = "\x1e"

func jsonSeq(e *env) {
	f := framing.JSONSeq{}
	before, lines := e.changes()
	a := e.watchIn(f.MediaType(), from(before))
	for _, want := range lines {
		text, err := a.body.ReadString('\n')
		if err != nil || !strings.HasPrefix(text, separator) || lineOf([]byte(text[1:])) != want {
			e.Fatalf("got %q, %v; want RS, %s, LF", text, err, want)
		}
	}
	e.dialIn(f, from(before)).want(lines...)
	if !e.can(InProcess) {
		return
	}
	first, last := separator+tiny("ADDED", "a", "5")+"\n", separator+tiny("ADDED", "c", "7")+"\n"
	for _, cut := range []string{separator + half, separator + half + "\n", separator + `{"type":"ADDED"` + "\n"} {
		s := e.stage(f.MediaType(), pieces(first+cut+last), ends).dialIn(f, "")
		s.want("ADDED a")
		if w, err := s.Receive(); err == nil || err == io.EOF {
			e.Errorf("%q between two events: got %s, %v; want an error that says what is missing", cut, w.Object, err)
		}
	}
	s := e.stage(f.MediaType(), pieces(separator+first+separator+separator+last), ends).dialIn(f, "")
	s.want("ADDED a", "ADDED c")
	s.wantEnd()
}

func cborSeq(e *env) {
	f := framing.CBORSeq{}
	before, lines := e.changes()
	a := e.watchIn(f.MediaType(), from(before))
	binary, text := e.dialIn(f, from(before)), e.dial(from(before))
	for _, want := range lines {
		var item bytes.Buffer
		if first, err := copyItem(&item, a.body); err != nil || first>>5 != 5 {
			e.Fatalf("got % x, %v; want an item of CBOR that is a map", item.Bytes(), err)
		}
		w, err := f.DecodeMessage(item.Bytes())
		if got := lineOf([]byte(`{"type":"` + w.Type + `","object":` + string(w.Object) + `}`)); err != nil || got != want {
			e.Fatalf("got %s, %v; want %s", got, err, want)
		}
		got, plain := binary.want(want)[0], text.want(want)[0]
		if diff := cmp.Diff(values(plain.Object.Data), values(got.Object.Data)); diff != "" || got.Version != plain.Version {
			e.Errorf("%s in CBOR at %d and in JSON at %d (-JSON +CBOR):\n%s", want, got.Version, plain.Version, diff)
		}
	}
}

// values is what JSON means.
func values(data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err.Error()
	}
	return v
}

// copyItem copies one item of CBOR (RFC 8949, section 3) of definite lengths, and returns its first byte.
func copyItem(dst *bytes.Buffer, src io.Reader) (byte, error) {
	begin := dst.Len()
	if _, err := io.CopyN(dst, src, 1); err != nil {
		return 0, err
	}
	first := dst.Bytes()[begin]
	major, n := first>>5, uint64(first&31)
	if n >= 24 {
		if n > 27 {
			return first, fmt.Errorf("no item of a definite length begins with %#02x", first)
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
