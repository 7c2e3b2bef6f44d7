package concurrency

import (
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/transport"
)

// frameSize is the default maximum size of a DATA frame (RFC 9113, section 6.5.2).
const frameSize = 16 << 10

// h2OneConn fills the window of a connection with an event on the first stream, and then
// queues events of one frame each on all other streams. When the window opens, no stream
// may get ahead of another by more than two events.
//
// A small event precedes these events. Each handler blocks while it sends the small event, until
// receiveOneEach opens the window for it. By then the case has written all other events, so each
// handler queues all of its events before the window opens fully. Without the small event, each
// handler would block on its first event, and the scheduler of net/http skips a stream whose
// handler is slow to queue more.
func h2OneConn(e *harness.Env) {
	const watches, events, maxDifference = 100, 4, 2
	start := e.Put("start")
	p := e.DialHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	got := map[uint32]int{}
	p.Watch(1, harness.LabelSelector("to=first")+"&"+harness.From(start))
	for i := range uint32(watches - 1) {
		got[3+2*i] = 0
		p.Watch(3+2*i, harness.LabelSelector("to=others")+"&"+harness.From(start))
		p.ReadUntil(h2peer.IsHeaders(3 + 2*i))
	}
	e.PutLabelled("a", "first", harness.HTTP2StreamWindow)
	for len(p.Data[1]) < harness.HTTP2StreamWindow {
		p.Read()
	}
	e.PutLabelled("b", "others", 0)
	<-time.After(time.Millisecond) // fake time advances only when the server is blocked
	for range events {
		e.PutLabelled("b", "others", frameSize-512)
	}
	receiveOneEach(p, slices.Collect(maps.Keys(got)))
	<-time.After(time.Millisecond)
	p.OpenConnectionWindow()
	for done := 0; done < (watches-1)*events; {
		f, ok := p.Read().(*http2.DataFrame)
		if !ok {
			continue
		}
		before, counted := got[f.StreamID]
		if !counted {
			continue
		}
		// A frame that ends one event may also contain the next event. The small event is not
		// counted.
		got[f.StreamID] = p.EventCount(f.StreamID) - 1
		done += got[f.StreamID] - before
		least, greatest := minMax(got)
		if greatest-least > maxDifference {
			e.Fatalf("after %d events, one stream had %d and another %d, want a difference of at most %d", done,
				greatest, least, maxDifference)
		}
	}
}

// receiveOneEach receives one event on each of the given streams. It opens the window of the
// connection in small steps, so that it receives less than one step of the following events. With
// even smaller steps, it would send more WINDOW_UPDATE frames than a server tolerates.
func receiveOneEach(p *harness.HTTP2Conn, streams []uint32) {
	const step = 1 << 10
	window := 0
	for _, stream := range streams {
		for p.EventCount(stream) == 0 {
			if window == 0 {
				window = step
				p.Must(p.Framer.WriteWindowUpdate(0, step))
			}
			if f, ok := p.Read().(*http2.DataFrame); ok {
				window -= len(f.Data())
			}
		}
	}
}

func minMax(counts map[uint32]int) (least, greatest int) {
	least = 1 << 30
	for _, n := range counts {
		least, greatest = min(least, n), max(greatest, n)
	}
	return least, greatest
}

// headOfLine leaves a large event unread on a separate connection. Other clients must still
// receive their events.
func headOfLine(e *harness.Env) {
	start := e.Put("start")
	big, err := e.WithVariant(e.Variant).TryDial(harness.LabelSelector("size=big")+"&"+harness.From(start),
		transport.Request{})
	if err != nil {
		e.Fatal(err)
	}
	small := e.Dial(harness.LabelSelector("size=small") + "&" + harness.From(start))
	if _, err := e.TryPutSpec("a", map[string]string{"size": "big"},
		map[string]any{"text": strings.Repeat("x", 1<<20)}); err != nil {
		e.Fatal(err)
	}
	for range 10 {
		want := e.Put("b", "size", "small")
		if got := small.Next().Version; got != want {
			e.Fatalf("got version %d, want %d", got, want)
		}
	}
	big.Want("ADDED a")
}
