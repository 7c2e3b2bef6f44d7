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

// TestTransport tests both ends of a transport against each other, in memory and on sockets, plain and over TLS; see
// [transporttest.Run].
func TestTransport(t *testing.T, p transporttest.Pair) { transporttest.Run(t, p) }

// TestFramer tests a framing: events survive it, wherever reads end; a stream that was cut off is told from one that ended; an event that is
// too large is refused; and a watch in it shows what was written. An object may come back in another spelling, if it is the same value.
func TestFramer(t *testing.T, f framing.Framer) {
	for name, test := range map[string]func(*testing.T, framing.Framer){
		"events-survive":                 eventsSurvive,
		"reads-may-end-anywhere":         readsMayEndAnywhere,
		"a-cut-is-told-from-an-end":      cutIsToldFromAnEnd,
		"errors-of-the-reader-pass":      errorsOfTheReaderPass,
		"the-limit-is-for-one-event":     limitIsForOneEvent,
		"messages-survive":               messagesSurvive,
		"a-watch-shows-what-was-written": watchShowsWhatWasWritten,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

// frames are the events that a framing is tested with.
func frames() []framing.WatchEvent {
	return []framing.WatchEvent{
		{Type: "ADDED", Object: []byte(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"n":9007199254740993}`), Version: 7},
		{Type: "MODIFIED", Object: []byte(`{"metadata":{"name":"é😀\u2028\n","resourceVersion":"8"},"list":[true,null,{},[],0.1,-3,"\u0000"]}`), Version: 8},
		{Type: "BOOKMARK", Object: []byte(`{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`), Version: 9},
		framing.FromError(&listwatch.Error{Code: listwatch.Expired, Message: "gone"}),
	}
}

// stream spells events, and says where each ends.
func stream(t *testing.T, f framing.Framer, events []framing.WatchEvent) (data []byte, ends []int) {
	t.Helper()
	for _, e := range events {
		next, err := f.AppendEvent(data, e)
		if err != nil {
			t.Fatalf("spell %s %s: %v", e.Type, e.Object, err)
		}
		if !bytes.HasPrefix(next, data) {
			t.Fatal("AppendEvent changed what was there")
		}
		data = next
		ends = append(ends, len(data))
	}
	return data, ends
}

// wantFrames reads events, and returns the error behind them.
func wantFrames(t *testing.T, what string, d framing.Decoder, want []framing.WatchEvent) error {
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
	x, errX := value(a)
	y, errY := value(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// value keeps numbers as they are spelt: those of frames have one spelling.
func value(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func eventsSurvive(t *testing.T, f framing.Framer) {
	data, _ := stream(t, f, frames())
	if err := wantFrames(t, "all", f.NewDecoder(bytes.NewReader(data), 0), frames()); err != io.EOF {
		t.Errorf("got %v behind the last event, want io.EOF", err)
	}
	if f.MediaType() == "" {
		t.Error("the framing has no media type")
	}
}

func readsMayEndAnywhere(t *testing.T, f framing.Framer) {
	data, _ := stream(t, f, frames())
	readers := []io.Reader{iotest.OneByteReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data))}
	for at := range data {
		readers = append(readers, io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:])))
	}
	for _, r := range readers {
		if err := wantFrames(t, "in pieces", f.NewDecoder(r, 0), frames()); err != io.EOF {
			t.Fatalf("got %v behind the last event, want io.EOF", err)
		}
	}
}

// cutIsToldFromAnEnd cuts within the last event: just behind an event, and within bytes that only separate, a stream may have ended.
func cutIsToldFromAnEnd(t *testing.T, f framing.Framer) {
	events := frames()[:2]
	data, ends := stream(t, f, events)
	for cut := ends[0] + (ends[1]-ends[0])/4; cut < ends[1]-4; cut++ {
		err := wantFrames(t, "cut", f.NewDecoder(bytes.NewReader(data[:cut]), 0), events[:1])
		if !errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			t.Fatalf("cut after %d of %d bytes: got %v, want io.ErrUnexpectedEOF", cut, ends[1], err)
		}
	}
}

func errorsOfTheReaderPass(t *testing.T, f framing.Framer) {
	data, _ := stream(t, f, frames())
	broken := errors.New("broken on purpose")
	err := wantFrames(t, "broken", f.NewDecoder(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), 0), frames())
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}

func limitIsForOneEvent(t *testing.T, f framing.Framer) {
	small := frames()[:1]
	data, ends := stream(t, f, append(small, small[0], small[0]))
	if err := wantFrames(t, "within the limit", f.NewDecoder(bytes.NewReader(data), 2*ends[0]), append(small, small[0], small[0])); err != io.EOF {
		t.Errorf("got %v, want three events that each are within the limit", err)
	}
	large := framing.WatchEvent{Type: "ADDED", Object: []byte(`{"text":"` + string(bytes.Repeat([]byte("x"), 1<<16)) + `"}`)}
	data, _ = stream(t, f, []framing.WatchEvent{large})
	if _, err := f.NewDecoder(bytes.NewReader(data), 1<<12).Decode(); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v of an event beyond the limit, want code Corrupt", err)
	}
}

func messagesSurvive(t *testing.T, f framing.Framer) {
	m, ok := f.(framing.MessageFramer)
	if !ok {
		t.Skip("the framing has no messages")
	}
	for _, e := range frames() {
		message, err := m.AppendMessage(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.DecodeMessage(message); err != nil || got.Type != e.Type || !sameValue(got.Object, e.Object) {
			t.Errorf("got %s %s, %v; want %s %s", got.Type, got.Object, err, e.Type, e.Object)
		}
	}
}

func watchShowsWhatWasWritten(t *testing.T, f framing.Framer) {
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
