package framing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// fuzzDecoder checks the properties of a decoder for arbitrary bytes: it does not panic,
// its errors have a code, it enforces the limit, the size of the reads does not matter, and
// all framings can encode the decoded events.
func fuzzDecoder(f *testing.F, framer Framer, seeds ...string) {
	f.Helper()
	stream, _ := encode(f, framer, sampleEvents()...)
	f.Add(stream)
	f.Add(stream[:len(stream)-3])
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, stream []byte) {
		events, err := decodeAll(framer.NewDecoder(bytes.NewReader(stream), limit))
		if err != io.EOF && !errors.Is(err, listwatch.Corrupt) {
			t.Fatalf("got %v, want EOF or Corrupt", err)
		}
		bytewise, bytewiseErr := decodeAll(framer.NewDecoder(iotest.OneByteReader(bytes.NewReader(stream)), limit))
		if len(bytewise) != len(events) || faultOf(bytewiseErr) != faultOf(err) {
			t.Fatalf("got %d events and %v at once, %d and %v byte by byte", len(events), err, len(bytewise),
				bytewiseErr)
		}
		for i, e := range events {
			if e.Type != bytewise[i].Type || !bytes.Equal(e.Object, bytewise[i].Object) ||
				e.Version != bytewise[i].Version {
				t.Fatalf("got %v at once, %v byte by byte", e, bytewise[i])
			}
			fuzzEvent(t, framer, e, limit)
		}
	})
}

// faultOf returns the text of err without the rejected input. A decoder that reads byte by byte
// quotes only the beginning of that input.
func faultOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), "of the event: invalid")
	return text
}

// fuzzEvent checks an event returned by a decoder.
func fuzzEvent(t *testing.T, framer Framer, e WatchEvent, limit int) {
	t.Helper()
	if len(e.Object) > limit {
		t.Fatalf("an object of %d bytes passed a limit of %d", len(e.Object), limit)
	}
	if _, err := e.Event(); err != nil && listwatch.CodeOf(err) == listwatch.Unknown && e.Type != TypeError {
		t.Fatalf("%v has no code", err)
	}
	fuzzTrustedEvent(t, e)
	for _, f := range []Framer{framer, JSON{}, CBORSeq{}} {
		again, err := f.AppendEvent(nil, e)
		if errors.Is(err, listwatch.Unsupported) ||
			errors.Is(err, listwatch.Invalid) && strings.ContainsAny(e.Type, "\r\n") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := f.NewDecoder(bytes.NewReader(again), 0).Decode()
		if err != nil {
			t.Fatalf("%T: %q: %v", f, again, err)
		}
		checkSame(t, f, e, back)
	}
}

// fuzzTrustedEvent checks that Event and TrustedEvent return the same result for an event
// of a decoder.
func fuzzTrustedEvent(t *testing.T, e WatchEvent) {
	t.Helper()
	want, wantErr := e.Event()
	got, gotErr := e.TrustedEvent()
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		t.Fatalf("%s: got %v, want %v", e.Object, gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	a, b := want.Object, got.Object
	if want.Type != got.Type {
		t.Fatalf("got type %v, want %v", got.Type, want.Type)
	}
	if a.Key != b.Key || a.Version != b.Version || !maps.Equal(a.Labels, b.Labels) || !bytes.Equal(a.Data, b.Data) {
		t.Fatalf("got %+v, want %+v", b, a)
	}
}

func fuzzMessages(f *testing.F, framer MessageFramer, seeds ...string) {
	f.Helper()
	for _, e := range sampleEvents() {
		message, err := framer.AppendMessage(nil, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		given := bytes.Clone(message)
		e, err := framer.DecodeMessage(message)
		if !bytes.Equal(message, given) {
			t.Fatal("DecodeMessage modified the message")
		}
		if err != nil {
			if !errors.Is(err, listwatch.Corrupt) {
				t.Fatalf("got %v, want Corrupt", err)
			}
			return
		}
		fuzzEvent(t, framer, e, 9*len(message))
	})
}

var jsonSeeds = []string{
	`{"object":{"a":[1,-0,1e400,"\ud800"]},"type":"X"}` + "\n{}", "{",
	`{"type":"A","object":{}}{"type":"B","object":{}}`, strings.Repeat(`{"a":[`, 30),
}

var cborSeeds = []string{
	"\xa2\x64type\x61A\x66object\xa0",
	"\xd9\xd9\xf7\xbf\x66object\xbf\x61a\x9f\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00\xc4\x82\x21\x19\x6a\xb3\xff\xff\x64type\x7f\x61A\x61B\xff\xff",
	"\xa2\x44type\x45ADDED\x46object\xa1\x41x\xd6\x42\x00\xff",
	"\xa2\x64type\x61A\x66object\xa3\x61a\xf9\x3c\x00\x61b\xfa\x47\xc3\x50\x00\x61c\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a",
}

func FuzzJSON(f *testing.F) { fuzzDecoder(f, JSON{}, jsonSeeds...) }
func FuzzLengthPrefixed(f *testing.F) {
	fuzzDecoder(f, LengthPrefixed{}, "\x00\x00\x00\x00", "\xff\xff\xff\xff")
}

func FuzzJSONSeq(f *testing.F) {
	fuzzDecoder(f, JSONSeq{}, "\x1e"+jsonSeeds[2], "\x1e\x1e"+jsonSeeds[2][:10]+"\x1e")
}
func FuzzCBORSeq(f *testing.F) { fuzzDecoder(f, CBORSeq{}, cborSeeds...) }
func FuzzSSE(f *testing.F) {
	fuzzDecoder(f, SSE{},
		"\uFEFFretry: 1\r\n\r\nid: 7\rdata:{\"type\":\"A\",\rdata\rdata: \"object\":{}}\r\r:\n\nid: \x00\n\n",
		":\n\ndata\n")
}
func FuzzJSONMessage(f *testing.F) { fuzzMessages(f, JSON{}, jsonSeeds...) }
func FuzzCBORMessage(f *testing.F) { fuzzMessages(f, CBORSeq{}, cborSeeds...) }

// FuzzEncode checks that encoders do not panic for any object, and that decoders can read
// the result.
func FuzzEncode(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add("ADDED", []byte(seed))
	}
	f.Add("A\r\nB", []byte("{\n\"a\":\r[1.50e-7, 123456789012345678901]}"))
	f.Fuzz(func(t *testing.T, typ string, object []byte) {
		text, invalid := rawjson.Compact(object)
		for _, framer := range allFramers {
			out, err := framer.AppendEvent(nil, WatchEvent{Type: typ, Object: object})
			if err != nil || invalid != nil {
				continue
			}
			back, err := framer.NewDecoder(bytes.NewReader(out), 0).Decode()
			if err != nil {
				if strings.Contains(err.Error(), "UTF-8") {
					continue
				}
				t.Fatalf("%T: %q: %v", framer, out, err)
			}
			checkSame(t, framer, WatchEvent{Type: typ, Object: text}, back)
		}
	})
}

// FuzzCBORToJSON checks that a body becomes a JSON object within the limit or an error with a code,
// and that the CBOR for Kubernetes of that object can be read.
func FuzzCBORToJSON(f *testing.F) {
	for _, seed := range cborSeeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte("\xa2\x41a\x01\x61a\x02"))
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 12
		object, err := CBORToJSON(body, limit)
		if err != nil {
			if err != ErrTooLarge && !errors.Is(err, listwatch.Invalid) {
				t.Fatalf("got %v, want ErrTooLarge or Invalid", err)
			}
			return
		}
		if len(object) > limit || !json.Valid(object) {
			t.Fatalf("got %s, want a JSON object of at most %d bytes", object, limit)
		}
		item, err := AppendCBOR(nil, object)
		if err != nil {
			t.Fatal(err)
		}
		back, err := CBORToJSON(item, 10*limit)
		if err != nil {
			if strings.Contains(err.Error(), "infinity") {
				return
			}
			t.Fatalf("%s: %v", object, err)
		}
		again, err := AppendCBOR(nil, back)
		if err != nil || !bytes.Equal(again, item) {
			t.Fatalf("%s: encoded as % x first, and as % x (%v) after a round trip", object, item, again, err)
		}
	})
}

// FuzzAccept checks that every header results in a framer or in an error with a code.
func FuzzAccept(f *testing.F) {
	f.Add("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5, */*;q=0.001")
	f.Add(`a/b;x="1,2;\"3\\";y=z, ,*;q=.2`)
	f.Add("text/event-stream")
	f.Fuzz(func(t *testing.T, accept string) {
		Default().Lookup(accept)
		ranges, err := ParseAccept([]string{accept})
		if err != nil && !errors.Is(err, listwatch.Unsupported) {
			t.Fatalf("got %v, want Unsupported", err)
		}
		if err != nil {
			return
		}
		for _, m := range ranges {
			if m.Q < 0 || m.Q > 1000 || m.Type == "" || m.Subtype == "" || m.Type == "*" && m.Subtype != "*" {
				t.Fatalf("%q: got %v", accept, m)
			}
		}
		for _, messages := range []bool{false, true} {
			framer, err := Default().Negotiate(ranges, messages)
			if (framer == nil) == (err == nil) {
				t.Fatalf("got %v and %v", framer, err)
			}
			if code := listwatch.CodeOf(err); err != nil && code != listwatch.Invalid && code != listwatch.Unsupported {
				t.Fatalf("got error %v, want code Invalid or Unsupported", err)
			}
		}
	})
}
