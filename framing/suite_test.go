package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/listwatch/listwatch"
	"pgregory.net/rapid"
)

// eachFramer runs a test with every framing.
func eachFramer(t *testing.T, test func(t *testing.T, f Framer)) {
	t.Helper()
	for _, f := range allFramers {
		t.Run(strings.TrimPrefix(fmt.Sprintf("%T", f), "framing."), func(t *testing.T) { test(t, f) })
	}
}

func sampleEvents() []WatchEvent {
	return []WatchEvent{
		{
			Type: "ADDED",
			Object: []byte(
				`{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"n":12345678901234567890123,"s":"é\u00e9😀"}}`),
		},
		{
			Type:    "MODIFIED",
			Object:  []byte(`{"metadata":{"name":"b","resourceVersion":"8"},"x":[1,-2.5,1e400,true,null,{}]}`),
			Version: 8,
		},
		FromError(&listwatch.Error{Code: listwatch.Expired, Message: "gone"}),
	}
}

func TestEventsSurviveTheRoundTrip(t *testing.T) {
	eachFramer(t, func(t *testing.T, f Framer) {
		rapid.Check(t, func(t *rapid.T) {
			events := rapid.SliceOfN(genEvent(), 1, 4).Draw(t, "events")
			var stream []byte
			var err error
			for _, e := range events {
				if stream, err = f.AppendEvent(stream, e); err != nil {
					t.Fatal(err)
				}
			}
			got, err := decodeAll(f.NewDecoder(bytes.NewReader(stream), 0))
			if err != io.EOF || len(got) != len(events) {
				t.Fatalf("got %d events and %v, want %d and EOF", len(got), err, len(events))
			}
			for i, e := range got {
				if e.Type != events[i].Type {
					t.Fatalf("got type %q, want %q", e.Type, events[i].Type)
				}
				if err := sameJSON(events[i].Object, e.Object); err != nil {
					t.Fatal(err)
				}
				if sameBytes(f) && !bytes.Equal(e.Object, events[i].Object) {
					t.Fatalf("got %s, want %s", e.Object, events[i].Object)
				}
			}
		})
	})
}

func TestMessagesSurviveTheRoundTrip(t *testing.T) {
	for _, f := range []MessageFramer{JSON{}, CBORSeq{}} {
		rapid.Check(t, func(t *rapid.T) {
			want := genEvent().Draw(t, "event")
			message, err := f.AppendMessage(nil, want)
			if err != nil {
				t.Fatal(err)
			}
			if !f.Binary() && bytes.HasSuffix(message, []byte("\n")) {
				t.Fatal("a message must not end with a newline")
			}
			got, err := f.DecodeMessage(message)
			if err != nil {
				t.Fatal(err)
			}
			if got.Type != want.Type {
				t.Fatalf("got type %q, want %q", got.Type, want.Type)
			}
			if err := sameJSON(want.Object, got.Object); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Conformance cases framing/byte-drip and chunk-boundaries-free.
func TestReadBoundariesDoNotMatter(t *testing.T) {
	events := sampleEvents()
	eachFramer(t, func(t *testing.T, f Framer) {
		stream, _ := encode(t, f, events...)
		readers := map[string]io.Reader{
			"bytewise":  iotest.OneByteReader(bytes.NewReader(stream)),
			"early EOF": iotest.DataErrReader(bytes.NewReader(stream)),
		}
		for at := range stream {
			readers[fmt.Sprint("split at ", at)] = io.MultiReader(bytes.NewReader(stream[:at]),
				bytes.NewReader(stream[at:]))
		}
		for name, r := range readers {
			got, err := decodeAll(f.NewDecoder(r, 0))
			if err != io.EOF || len(got) != len(events) {
				t.Fatalf("%s: got %d events and %v, want %d and EOF", name, len(got), err, len(events))
			}
			for i := range got {
				checkSame(t, f, events[i], got[i])
			}
		}
	})
}

// If a read ends within an event, Buffered must not return this event, and must not lose its bytes.
func TestBufferedReturnsCompleteEventsOnly(t *testing.T) {
	events := sampleEvents()
	eachFramer(t, func(t *testing.T, f Framer) {
		stream, ends := encode(t, f, events...)
		for at := 1; at < len(stream); at++ {
			arrived := 0
			if at >= minBytesToDecode(f, ends[0]) {
				arrived = 1
			}
			for arrived > 0 && arrived < len(ends) && ends[arrived] <= at {
				arrived++
			}
			d := f.NewDecoder(io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:])), 0)
			got := decodeBatch(t, d)
			if arrived > 0 && len(got) != arrived {
				t.Fatalf("split at %d: the first batch has %d events, want %d", at, len(got), arrived)
			}
			for len(got) < len(events) {
				got = append(got, decodeBatch(t, d)...)
			}
			for i := range got {
				checkSame(t, f, events[i], got[i])
			}
			if _, ok := d.(Buffered).Buffered(); ok {
				t.Fatalf("split at %d: Buffered returned an event after the last one", at)
			}
			if _, err := d.Decode(); err != io.EOF {
				t.Fatalf("split at %d: got %v, want EOF", at, err)
			}
		}
	})
}

// decodeBatch returns the next event and the events that have arrived with it.
func decodeBatch(t *testing.T, d Decoder) (batch []WatchEvent) {
	t.Helper()
	e, err := d.Decode()
	if err != nil {
		t.Fatal(err)
	}
	for ok := true; ok; e, ok = d.(Buffered).Buffered() {
		batch = append(batch, e)
	}
	return batch
}

// Conformance case framing/truncated-final.
func TestTruncationIsNotACleanEnd(t *testing.T) {
	eachFramer(t, func(t *testing.T, f Framer) {
		stream, ends := encode(t, f, sampleEvents()...)
		for cut := range len(stream) + 1 {
			complete, between := 0, cut == 0
			for _, end := range ends {
				if cut >= minBytesToDecode(f, end) {
					complete++
					between = cut <= end || cut == len(stream)
				}
			}
			got, err := decodeAll(f.NewDecoder(bytes.NewReader(stream[:cut]), 0))
			if len(got) != complete {
				t.Fatalf("cut at %d of %d: got %d events, want %d", cut, len(stream), len(got), complete)
			}
			if between != (err == io.EOF) {
				t.Fatalf("cut at %d of %d: got %v; between two events: %v", cut, len(stream), err, between)
			}
			if !between && (!errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, listwatch.Corrupt)) {
				t.Fatalf("cut at %d: got %v, want Corrupt that wraps ErrUnexpectedEOF", cut, err)
			}
		}
	})
}

// minBytesToDecode returns the number of bytes of a stream that suffice to decode the event that
// ends at offset end. A JSON object is complete before its newline.
func minBytesToDecode(f Framer, end int) int {
	switch f.(type) {
	case JSON, JSONSeq:
		return end - 1
	}
	return end
}

// Conformance case framing/coalesced.
func TestManyEventsInOneRead(t *testing.T) {
	eachFramer(t, func(t *testing.T, f Framer) {
		events := make([]WatchEvent, 1000)
		for i := range events {
			events[i] = WatchEvent{
				Type:   "ADDED",
				Object: fmt.Appendf(nil, `{"metadata":{"name":"n%d","resourceVersion":"%d"}}`, i, i+1),
			}
		}
		stream, _ := encode(t, f, events...)
		got, err := decodeAll(f.NewDecoder(bytes.NewReader(stream), 0))
		if err != io.EOF || len(got) != len(events) {
			t.Fatalf("got %d events and %v", len(got), err)
		}
		for i := range got {
			checkSame(t, f, events[i], got[i])
		}
	})
}

// A decoder must return an event as soon as it has received the event's last byte, because the next
// event may follow hours later.
func TestEventIsReturnedBeforeTheNextArrives(t *testing.T) {
	eachFramer(t, func(t *testing.T, f Framer) {
		for _, object := range []string{`{}`, `{"a":""}`, `{"a":[]}`, `{"a":0}`, `{"a":{"b":[""]}}`} {
			e := WatchEvent{Type: "ADDED", Object: []byte(object)}
			stream, _ := encode(t, f, e)
			d := f.NewDecoder(io.MultiReader(iotest.OneByteReader(bytes.NewReader(stream)),
				iotest.ErrReader(errors.New("the decoder reads more"))), 0)
			got, err := d.Decode()
			if err != nil {
				t.Fatalf("%s: %v", object, err)
			}
			checkSame(t, f, e, got)
		}
	})
}

func TestReaderErrorsAreReturnedUnchanged(t *testing.T) {
	broken := errors.New("connection reset")
	eachFramer(t, func(t *testing.T, f Framer) {
		stream, _ := encode(t, f, sampleEvents()[0])
		for at := range len(stream) {
			d := f.NewDecoder(io.MultiReader(bytes.NewReader(stream[:at]), iotest.ErrReader(broken)), 0)
			_, err := decodeAll(d)
			if err != broken { //nolint:errorlint // must be unchanged
				t.Fatalf("at %d: got %v, want the error of the reader unchanged", at, err)
			}
			if _, again := d.Decode(); again != err { //nolint:errorlint // must be the same
				t.Fatalf("at %d: got %v then %v: a failed decoder must return the same error again", at, err, again)
			}
		}
		if _, err := f.NewDecoder(emptyReader{}, 0).Decode(); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v from a reader that returns nothing, want ErrNoProgress", err)
		}
	})
}

// An emptyReader returns no bytes and no error.
type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

// Conformance case framing/field-order-free. The texts also have unknown and duplicate
// members.
func TestMemberOrderDoesNotMatter(t *testing.T) {
	for _, text := range []string{
		`{"type":"ADDED","object":{"a":1}}`, `{"object":{"a":1},"type":"ADDED"}`,
		"{ \"x\" : [ {} ] , \"object\" :\r\n{ \"a\" :\t1 } ,\"type\": \"ADDED\", \"y\":null}",
		`{"\u0074ype":"\u0041DDED","object":{"a":1}}`, `{"type":"X","object":{},"type":"ADDED","object":{"a":1}}`,
	} {
		got, err := JSON{}.DecodeMessage([]byte(text))
		if err != nil || got.Type != "ADDED" || string(got.Object) != `{"a":1}` {
			t.Errorf("%s: got %s %s and %v", text, got.Type, got.Object, err)
		}
	}
}

func TestInvalidEventsAreRejected(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"type":"ADDED"}`, `{"object":{}}`, `{"type":"","object":{}}`, `{"type":1,"object":{}}`,
		`{"type":null,"object":{}}`,
		`{"type":"ADDED","object":[]}`, `{"type":"ADDED","object":null}`, `{"type":"ADDED","object":"x"}`, `[]`, `1`,
		`"x"`, `nope`,
		"{\"type\":\"\xff\",\"object\":{}}", "{\"type\":\"A\",\"object\":{\"a\":\"\n\"}}",
	} {
		for _, f := range []Framer{JSON{}, JSONSeq{}, LengthPrefixed{}, SSE{}} {
			stream := map[Framer]string{
				JSON{}: text + "\n", JSONSeq{}: "\x1e" + text + "\n",
				LengthPrefixed{}: "\x00\x00\x00" + string(rune(len(text))) + text,
				SSE{}:            "data: " + strings.ReplaceAll(text, "\n", "\u0001") + "\n\n",
			}[f]
			if _, err := f.NewDecoder(strings.NewReader(stream), 0).Decode(); !errors.Is(err, listwatch.Corrupt) ||
				errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%T %q: got %v, want Corrupt", f, text, err)
			}
		}
	}
	for _, e := range []WatchEvent{
		{Type: "", Object: []byte("{}")},
		{Type: "\xff", Object: []byte("{}")},
		{Type: "A"},
		{Type: "A", Object: []byte("[]")},
	} {
		eachFramer(t, func(t *testing.T, f Framer) {
			if out, err := f.AppendEvent([]byte("kept"), e); !errors.Is(err, listwatch.Invalid) ||
				string(out) != "kept" {
				t.Errorf("%v: got %q and %v, want the unchanged prefix and Invalid", e, out, err)
			}
		})
	}
}
