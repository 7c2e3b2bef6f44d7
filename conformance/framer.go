package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/watchserver"
)

// TestTransport tests both ends of a transport against each other, over an in-memory network and
// over sockets, with and without TLS; see [transporttest.Run].
func TestTransport(t *testing.T, p transporttest.Pair) { transporttest.Run(t, p) }

// TestFramer tests a framing. Events must survive encoding and decoding, however reads are split. A
// truncated stream must be distinguishable from a complete one, and an event beyond the size limit
// must be refused. A watch must deliver the objects that were written. A framing need not preserve
// the bytes of an object, only its JSON value. A [framing.EncodedFramer] cannot be tested, because
// the objects are JSON.
func TestFramer(t *testing.T, f framing.Framer) {
	for name, test := range map[string]func(*testing.T, framing.Framer){
		"round-trip":   testRoundTrip,
		"split-reads":  testSplitReads,
		"truncation":   testTruncation,
		"reader-error": testReaderError,
		"event-limit":  testEventLimit,
		"messages":     testMessages,
		"watch":        testWatch,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

// testEvents returns events with unusual numbers and text, a bookmark, and an ERROR event.
func testEvents() []framing.WatchEvent {
	return []framing.WatchEvent{
		{
			Type: "ADDED",
			Object: []byte(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},` +
				`"n":9007199254740993}`),
			Version: 7,
		},
		{
			Type: "MODIFIED",
			Object: []byte(`{"metadata":{"name":"é😀\u2028\n","resourceVersion":"8"},` +
				`"list":[true,null,{},[],0.1,-3,"\u0000"]}`),
			Version: 8,
		},
		{
			Type: "BOOKMARK", Object: []byte(`{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`),
			Version: 9,
		},
		framing.FromError(&listwatch.Error{Code: listwatch.Expired, Message: "gone"}),
	}
}

// encodeEvents returns the encoded events, and the offset at which each of them ends.
func encodeEvents(t *testing.T, f framing.Framer, events []framing.WatchEvent) (data []byte, ends []int) {
	t.Helper()
	for _, e := range events {
		next, err := f.AppendEvent(data, e)
		if err != nil {
			t.Fatalf("encode %s %s: %v", e.Type, e.Object, err)
		}
		if !bytes.HasPrefix(next, data) {
			t.Fatal("AppendEvent changed the existing bytes")
		}
		data = next
		ends = append(ends, len(data))
	}
	return data, ends
}

// wantEvents decodes events, which must equal want, and returns the error of the next Decode.
func wantEvents(t *testing.T, what string, d framing.Decoder, want []framing.WatchEvent) error {
	t.Helper()
	for i, w := range want {
		got, err := d.Decode()
		if err != nil {
			t.Fatalf("%s: event %d: %v", what, i, err)
		}
		if got.Type != w.Type || !sameValue(got.Object, w.Object) {
			t.Fatalf("%s: event %d: got %s %s, want %s %s", what, i, got.Type, got.Object, w.Type, w.Object)
		}
	}
	_, err := d.Decode()
	return err
}

func sameValue(a, b []byte) bool {
	x, errX := decodeJSON(a)
	y, errY := decodeJSON(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// decodeJSON decodes data without converting numbers to float64.
func decodeJSON(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func testRoundTrip(t *testing.T, f framing.Framer) {
	data, _ := encodeEvents(t, f, testEvents())
	if err := wantEvents(t, "all", f.NewDecoder(bytes.NewReader(data), 0), testEvents()); err != io.EOF {
		t.Errorf("got %v after the last event, want io.EOF", err)
	}
	if f.MediaType() == "" {
		t.Error("the framing has no media type")
	}
}

func testSplitReads(t *testing.T, f framing.Framer) {
	data, _ := encodeEvents(t, f, testEvents())
	readers := []io.Reader{iotest.OneByteReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data))}
	for at := range data {
		readers = append(readers, io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:])))
	}
	for _, r := range readers {
		if err := wantEvents(t, "split", f.NewDecoder(r, 0), testEvents()); err != io.EOF {
			t.Fatalf("got %v after the last event, want io.EOF", err)
		}
	}
}

// testTruncation cuts the stream at many places within the last event. It makes no cuts between
// events or in separators, because a stream may end there.
func testTruncation(t *testing.T, f framing.Framer) {
	events := testEvents()[:2]
	data, ends := encodeEvents(t, f, events)
	for cut := ends[0] + (ends[1]-ends[0])/4; cut < ends[1]-4; cut++ {
		err := wantEvents(t, "cut", f.NewDecoder(bytes.NewReader(data[:cut]), 0), events[:1])
		if !errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			t.Fatalf("cut after %d of %d bytes: got %v, want io.ErrUnexpectedEOF", cut, ends[1], err)
		}
	}
}

func testReaderError(t *testing.T, f framing.Framer) {
	data, _ := encodeEvents(t, f, testEvents())
	broken := errors.New("intentional error")
	err := wantEvents(t, "broken",
		f.NewDecoder(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), 0), testEvents())
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func testEventLimit(t *testing.T, f framing.Framer) {
	small := testEvents()[:1]
	data, ends := encodeEvents(t, f, append(small, small[0], small[0]))
	if err := wantEvents(t, "within the limit", f.NewDecoder(bytes.NewReader(data), 2*ends[0]),
		append(small, small[0], small[0])); err != io.EOF {
		t.Errorf("got %v, want three events within the limit", err)
	}
	large := framing.WatchEvent{
		Type: "ADDED", Object: []byte(`{"text":"` + string(bytes.Repeat([]byte("x"), 1<<16)) + `"}`),
	}
	data, _ = encodeEvents(t, f, []framing.WatchEvent{large})
	if _, err := f.NewDecoder(bytes.NewReader(data), 1<<12).Decode(); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v for an event beyond the limit, want code Corrupt", err)
	}
}

func testMessages(t *testing.T, f framing.Framer) {
	m, ok := f.(framing.MessageFramer)
	if !ok {
		t.Skip("the framing has no message form")
	}
	for _, e := range testEvents() {
		message, err := m.AppendMessage(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.DecodeMessage(message); err != nil || got.Type != e.Type || !sameValue(got.Object, e.Object) {
			t.Errorf("got %s %s, %v; want %s %s", got.Type, got.Object, err, e.Type, e.Object)
		}
	}
}

func testWatch(t *testing.T, f framing.Framer) {
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	framings, err := framing.NewRegistry(f)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&watchserver.Server{Source: things, Framings: framings})
	defer server.Close()
	remote := &client.Remote{URL: server.URL, Framings: []framing.Framer{f}}
	defer remote.Close()
	w, err := remote.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, text := range []string{"one", "two"} {
		want, err := things.Create(t.Context(), []byte(`{"metadata":{"name":"`+text+`"},"text":"`+text+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		var got [1]listwatch.Event
		if _, err := w.Next(context.Background(), got[:]); err != nil {
			t.Fatal(err)
		}
		if e := got[0]; e.Version != want.Version || !sameValue(e.Object.Data, want.Data) {
			t.Errorf("got %s at %d, want %s at %d", e.Object.Data, e.Version, want.Data, want.Version)
		}
	}
}
